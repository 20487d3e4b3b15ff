package zpages

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

const (
	jsonMedia = "application/json"
	yamlMedia = "application/yaml"
	textMedia = "text/plain"
)

// media are the types that there are. Of those that a request likes equally,
// the first counts.
func media() []string { return []string{jsonMedia, yamlMedia, textMedia} }

// A form is how an answer is to be written.
type form struct {
	media string
	// as is the kind of object; zero if none is asked for.
	as schema.GroupVersionKind
	// pretty indents JSON.
	pretty bool
}

// choose returns the form that a request likes best of those that fit.
func choose(r *http.Request, fits func(form) bool) (form, bool) {
	for _, clause := range goautoneg.ParseAccept(r.Header.Get("Accept")) {
		for _, m := range media() {
			f := form{media: m, as: kind(clause.Params), pretty: clause.Params["pretty"] == "1" || pretty(r)}
			if covers(clause, m) && fits(f) {
				return f, true
			}
		}
	}
	return form{}, false
}

// kind reads the parameters that name a kind.
func kind(params map[string]string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: params["g"], Version: params["v"], Kind: params["as"]}
}

// covers tells whether a clause is for a media type. One for a stream, or for a
// version of the server, is for none.
func covers(c goautoneg.Accept, media string) bool {
	if c.Params["stream"] != "" || c.Params["sv"] != "" {
		return false
	}
	first, _, _ := strings.Cut(media, "/")
	return slices.Contains([]string{media, first + "/*", "*/*"}, c.Type+"/"+c.SubType)
}

// pretty tells whether somebody is going to read the answer: who says so, or
// uses a browser or one of two tools (isPrettyPrint in k8s.io/apiserver 0.37,
// pkg/endpoints/handlers/negotiation).
func pretty(r *http.Request) bool {
	if said := r.URL.Query().Get("pretty"); said != "" {
		yes, err := strconv.ParseBool(said)
		return err == nil && yes
	}
	return slices.ContainsFunc([]string{"curl", "Wget", "Mozilla/5.0"}, func(agent string) bool {
		return strings.HasPrefix(r.UserAgent(), agent)
	})
}

// contentType is the header of that name.
func (f form) contentType() string {
	if f.as.Empty() {
		return f.media
	}
	return f.media + ";g=" + f.as.Group + ";v=" + f.as.Version + ";as=" + f.as.Kind
}

func (f form) marshal(v any) ([]byte, error) {
	switch {
	case f.media == yamlMedia:
		return yaml.Marshal(v)
	case f.pretty:
		return json.MarshalIndent(v, "", "  ")
	}
	text, err := json.Marshal(v)
	return append(text, '\n'), err
}
