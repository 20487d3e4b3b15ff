package metrics

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// A query is for a page in a form.
type query struct{ path, accept, agent string }

// queries are for both pages in each form that either has, or refuses.
func queries() (all []query) {
	for path, kind := range map[string]string{"/statusz": "Statusz", "/flagz": "Flagz"} {
		as := ";as=" + kind + ";g=config.k8s.io;v="
		for _, accept := range []string{
			"", " ", "*/*", "text/*", "text/plain", "text/html", "nonsense", "application/json, text/plain;q=0.1",
			"application/json" + as + "v1beta1", "application/json" + as + "v1alpha1", "application/json" + as + "v1",
			"application/yaml" + as + "v1beta1", "application/*" + as + "v1beta1", "*/*" + as + "v1beta1",
			"text/plain;q=0.5, application/yaml;q=0.6" + as + "v1beta1", "application/json;pretty=1" + as + "v1beta1",
			"application/json;stream=watch" + as + "v1beta1", "application/json;sv=v1" + as + "v1beta1",
			"application/json", "application/yaml", "application/cbor" + as + "v1beta1", "text/plain" + as + "v1beta1",
		} {
			all = append(all, query{path, accept, ""}, query{path, accept, "curl/8.1"})
		}
		all = append(all, query{path + "?pretty=true", "application/json" + as + "v1beta1", ""}, query{path + "/", "", ""})
	}
	return all
}

// shown is what a query is answered with: facts by their names, whatever the form.
type shown struct {
	Status           int
	ContentType      string
	Warned, Indented bool
	Facts            map[string]any
}

func (p *proxy) query(t *testing.T, q query) shown {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, metricsAddress+q.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if q.accept != "" {
		request.Header.Set("Accept", q.accept)
	}
	if q.agent != "" {
		request.Header.Set("User-Agent", q.agent)
	}
	got, err := p.from.Ask(request)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	kind := got.Header.Get("Content-Type")
	return shown{got.Status, kind, got.Header.Get("Warning") != "", strings.HasPrefix(got.Body, "{\n"), p.facts(t, kind, got.Body)}
}

// line is one of a page as text, with any of the delimiters that there are.
var line = regexp.MustCompile(`(?m)^(Started|Up|Go version|Binary version|Emulation version|Paths|[a-z-]+)(?:: |[:= ]) ?(.*)$`)

func (p *proxy) facts(t *testing.T, contentType, body string) map[string]any {
	t.Helper()
	facts := map[string]any{}
	if !strings.HasPrefix(contentType, "text/") {
		if err := yaml.Unmarshal([]byte(body), &facts); err != nil { // which reads JSON too
			t.Fatalf("%s: %v in %s", p.name, err, body)
		}
		return facts
	}
	title, rest, _ := strings.Cut(strings.TrimPrefix(body, "\n"), "\n")
	facts["title"] = title
	for _, match := range line.FindAllStringSubmatch(rest, -1) {
		facts[match[1]] = match[2]
	}
	return facts
}

// differing are facts that only have to be there: a message in words of its own,
// what differs from start to start, the version of the binary, and two flags that
// this test has to give.
var differing = []string{
	"message", "Started", "startTime", "Up", "uptimeSeconds", "Binary version", "binaryVersion", "config", "logging-format",
}

// ownFlags are those that kube-proxy does not have, and help, which belongs to a
// command and is not shown where that is left out.
var ownFlags = regexp.MustCompile(`^(nl-.*|manifests|help)$`)

// common makes facts those that both proxies have to show. What differs is only
// to be there.
func common(facts map[string]any) map[string]any {
	for name, value := range facts {
		flags, nested := value.(map[string]any)
		switch {
		case nested && name == "flags":
			facts[name] = common(flags)
		case ownFlags.MatchString(name):
			delete(facts, name)
		case slices.Contains(differing, name) && value != "":
			facts[name] = "some"
		case name == "Paths":
			facts[name] = strings.TrimSuffix(value.(string), " /version")
		case name == "paths":
			facts[name] = slices.DeleteFunc(value.([]any), func(path any) bool { return path == "/version" })
		}
	}
	return facts
}

func (p *proxy) queryAll(t *testing.T) map[query]shown {
	t.Helper()
	all := map[query]shown{}
	for _, q := range queries() {
		all[q] = p.query(t, q)
	}
	return all
}

func TestStatusAndFlagsAreThoseOfKubeProxy(t *testing.T) {
	r := newRig(t)
	answers := map[string]map[query]shown{}
	theirs, ours := r.each(t, func(t *testing.T, p *proxy) {
		p.seen = p.scrape(t)
		answers[p.name] = p.queryAll(t)
		p.checkStart(t)
	})
	for q, want := range answers[theirs.name] {
		got := answers[ours.name][q]
		common(want.Facts)
		common(got.Facts)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, Accept: %q, %s (-kube-proxy +nlproxy):\n%s", q.path, q.accept, q.agent, diff)
		}
	}
}

// checkStart checks that /statusz tells the start that the metrics tell.
func (p *proxy) checkStart(t *testing.T) {
	t.Helper()
	facts := p.query(t, query{"/statusz", "application/json;as=Statusz;g=config.k8s.io;v=v1beta1", ""}).Facts
	text, _ := facts["startTime"].(string)
	at, err := time.Parse(time.RFC3339, text)
	want, _ := p.seen.value("process_start_time_seconds", "")
	if off := time.Duration((want - float64(at.Unix())) * float64(time.Second)); err != nil || off.Abs() > 2*time.Second {
		t.Errorf("%s: /statusz says that it was started at %v, its metrics at %v: %v", p.name, at, want, err)
	}
}

func TestStatusAndFlagsAreServedAsTheFeatureGatesSay(t *testing.T) {
	r := newRig(t)
	r.configuration += "featureGates: {ComponentStatusz: false, ComponentFlagz: false}\n"
	r.each(t, func(t *testing.T, p *proxy) {
		p.seen = p.scrape(t)
		for _, path := range []string{"/statusz", "/flagz"} {
			if got := p.query(t, query{path, "", ""}); got.Status != http.StatusNotFound {
				t.Errorf("%s: %s: %+v", p.name, path, got)
			}
		}
	})
}
