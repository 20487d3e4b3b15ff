package zpages

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// component is the one that these pages are of, whatever program is in its
// place.
const component = "kube-proxy"

const group = "config.k8s.io"

// The versions of both kinds: they are the same but for their name, and that
// the second is deprecated.
const (
	current    = "v1beta1"
	deprecated = "v1alpha1"
)

// header is what every object has.
type header struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

// object is what a page shows.
type object interface {
	// text is for people, one fact a line.
	text() string
}

// page shows one kind.
type page struct {
	kind string
	// read makes an object with this header, of what is true now.
	read func(header) (object, error)
}

// ServeHTTP implements http.Handler.
func (p page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := form{media: textMedia}, true
	if strings.TrimSpace(r.Header.Get("Accept")) != "" {
		f, ok = choose(r, p.has)
	}
	if !ok {
		p.refuse(w, r)
		return
	}
	o, err := p.read(p.header(f.as.Version))
	switch {
	case err != nil:
		http.Error(w, fmt.Sprintf("%s: %v", p.path(), err), http.StatusInternalServerError)
	case f.media == textMedia:
		p.print(w, o)
	default:
		p.warn(w, f.as.Version)
		write(w, http.StatusOK, f, o)
	}
}

func (p page) path() string { return "/" + strings.ToLower(p.kind) }

// has tells whether the page is to be had in a form: as text, or as an object
// whose kind is named.
func (p page) has(f form) bool {
	if f.media == textMedia {
		return f.as.Empty()
	}
	return f.as.Group == group && f.as.Kind == p.kind && slices.Contains([]string{current, deprecated}, f.as.Version)
}

func (p page) header(version string) (h header) {
	h.Kind, h.APIVersion = p.kind, group+"/"+version
	h.Metadata.Name = component
	return h
}

// print writes the page as text.
func (p page) print(w http.ResponseWriter, o object) {
	w.Header().Set("Content-Type", textMedia+"; charset=utf-8")
	_, _ = fmt.Fprintf(w, "\n%s %s\nWarning: for people alone, and may change; programs are to accept %s\n%s",
		component, strings.ToLower(p.kind), p.structured(), o.text())
}

// structured is the media type that a program is best served with.
func (p page) structured() string {
	return fmt.Sprintf("%s;as=%s;v=%s;g=%s", jsonMedia, p.kind, current, group)
}

func (p page) warn(w http.ResponseWriter, version string) {
	if version == deprecated {
		w.Header().Set("Warning", fmt.Sprintf(`299 - "%s of %s is deprecated: ask for %s"`, deprecated, p.path(), current))
	}
}

// refuse says what is to be had, as an object if the request is for objects.
func (p page) refuse(w http.ResponseWriter, r *http.Request) {
	f, ok := choose(r, func(f form) bool { return f.media != textMedia && f.as.Empty() })
	if !ok {
		f = form{media: jsonMedia, pretty: true}
	}
	write(w, http.StatusNotAcceptable, f, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  fmt.Sprintf("Accept: must be %s, the same of %s, or %s", p.structured(), yamlMedia, textMedia),
		Reason:   metav1.StatusReasonNotAcceptable,
		Code:     http.StatusNotAcceptable,
	})
}

// write answers with an object. What cannot be written has nobody to read it.
func write(w http.ResponseWriter, code int, f form, v any) {
	text, err := f.marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", f.contentType())
	w.WriteHeader(code)
	_, _ = io.WriteString(w, string(text))
}
