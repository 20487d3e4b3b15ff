package watch

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"
)

// apiServer speaks as much of lists and watches as a source needs, in protobuf
// or, to those who accept that first, in JSON. It can be told to be old,
// forgetful, or away.
type apiServer struct {
	*httptest.Server
	scheme *runtime.Scheme
	codecs runtime.NegotiatedSerializer

	queries chan url.Values // of each request, while there is room
	accepts chan string

	mu      sync.Mutex
	changed *sync.Cond
	version int
	objects map[string]map[string]metav1.Object // by resource and name
	log     []change
	lost    int  // the version up to which the log is lost
	epoch   int  // raised to end all watches
	away    bool // refuses everything
	strange bool // knows nobody

	oldFields  bool // knows no field but the name
	oldStreams bool // streams no lists
	noLabels   bool // takes no notice of label selectors
}

// change is one event. Before and after are nil where there is no object.
type change struct {
	version       int
	resource      string
	before, after metav1.Object
}

func newAPIServer(t *testing.T) *apiServer {
	scheme, err := newScheme()
	must(t, err)
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	s := &apiServer{
		scheme:  scheme,
		codecs:  codecs,
		queries: make(chan url.Values, 100),
		accepts: make(chan string, 100),
		version: 1,
		objects: map[string]map[string]metav1.Object{"services": {}, "endpointslices": {}, "nodes": {}},
	}
	s.changed = sync.NewCond(&s.mu)
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.disconnect()
		s.Close()
	})
	return s
}

// put makes an object be as given.
func (s *apiServer) put(resource string, o metav1.Object) { s.set(resource, o.GetName(), o) }

// drop makes an object be gone.
func (s *apiServer) drop(resource, name string) { s.set(resource, name, nil) }

func (s *apiServer) set(resource, name string, o metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	before := s.objects[resource][name]
	if o == nil {
		delete(s.objects[resource], name)
	} else {
		o.SetResourceVersion(strconv.Itoa(s.version))
		s.objects[resource][name] = o
	}
	s.log = append(s.log, change{s.version, resource, before, o})
	s.changed.Broadcast()
}

// forget makes all versions until now unknown, as a restart does.
func (s *apiServer) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.lost = s.version
	s.log = nil
}

// disconnect ends all watches.
func (s *apiServer) disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	s.changed.Broadcast()
}

// leave makes the server refuse everything, or serve again.
func (s *apiServer) leave(away bool) {
	s.mu.Lock()
	s.away = away
	s.mu.Unlock()
	s.disconnect()
}

// answer is what is written in one format.
type answer struct {
	http.ResponseWriter
	format runtime.SerializerInfo
}

// answerTo is in the first format that a request accepts, of those there are.
func (s *apiServer) answerTo(w http.ResponseWriter, r *http.Request) answer {
	for _, accepted := range strings.Split(r.Header.Get("Accept"), ",") {
		media, _, _ := strings.Cut(strings.TrimSpace(accepted), ";")
		if format, ok := runtime.SerializerInfoForMediaType(s.codecs.SupportedMediaTypes(), media); ok {
			return answer{w, format}
		}
	}
	panic("accepts " + r.Header.Get("Accept"))
}

// estrange makes the server know nobody, or everybody again.
func (s *apiServer) estrange(strange bool) {
	s.mu.Lock()
	s.strange = strange
	s.mu.Unlock()
	s.disconnect()
}

func (s *apiServer) ServeHTTP(plain http.ResponseWriter, r *http.Request) {
	w := s.answerTo(plain, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	for _, record := range []func(){
		func() { s.queries <- q }, func() { s.accepts <- r.Header.Get("Accept") },
	} {
		if len(s.queries) < cap(s.queries)-1 && len(s.accepts) < cap(s.accepts)-1 {
			record()
		}
	}
	w.Header().Set("Content-Type", w.format.MediaType)
	if status := s.refusal(q); status != nil {
		w.WriteHeader(int(status.ErrStatus.Code))
		s.write(w, &status.ErrStatus)
		return
	}
	match := s.selector(q)
	if q.Get("watch") == "true" {
		w.Header().Set("Content-Type", w.format.MediaType+";stream=watch")
		s.watch(w, r, match)
		return
	}
	s.list(w, path.Base(r.URL.Path), match)
}

func (s *apiServer) refusal(q url.Values) *apierrors.StatusError {
	switch {
	case s.away:
		return apierrors.NewServiceUnavailable("away")
	case s.strange:
		return apierrors.NewUnauthorized("Unauthorized")
	case s.oldFields && q.Has("fieldSelector") && fields.ParseSelectorOrDie(q.Get("fieldSelector")).Requirements()[0].Field != "metadata.name":
		return apierrors.NewBadRequest(`"spec.clusterIP" is not a known field selector: only "metadata.name", "metadata.namespace"`)
	case s.oldStreams && q.Has("sendInitialEvents"):
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	}
	return nil
}

// selector returns whether an object is there for a request.
func (s *apiServer) selector(q url.Values) func(metav1.Object) bool {
	byLabel, err := labels.Parse(q.Get("labelSelector"))
	if err != nil || s.noLabels {
		byLabel = labels.Everything()
	}
	byField := fields.ParseSelectorOrDie(q.Get("fieldSelector"))
	return func(o metav1.Object) bool {
		if o == nil {
			return false
		}
		set := fields.Set{"metadata.name": o.GetName()}
		if svc, ok := o.(*corev1.Service); ok {
			set["spec.clusterIP"] = svc.Spec.ClusterIP
		}
		return byLabel.Matches(labels.Set(o.GetLabels())) && byField.Matches(set)
	}
}

// kinds gives each resource its kind.
var kinds = map[string]schema.GroupVersionKind{
	"services":       corev1.SchemeGroupVersion.WithKind("Service"),
	"nodes":          corev1.SchemeGroupVersion.WithKind("Node"),
	"endpointslices": discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
}

func (s *apiServer) list(w answer, resource string, match func(metav1.Object) bool) {
	kind := kinds[resource]
	list := s.new(kind.GroupVersion().WithKind(kind.Kind + "List"))
	var items []runtime.Object
	for _, o := range s.objects[resource] {
		if match(o) {
			items = append(items, o.(runtime.Object))
		}
	}
	if err := meta.SetList(list, items); err != nil {
		panic(err)
	}
	list.(metav1.ListInterface).SetResourceVersion(strconv.Itoa(s.version))
	s.write(w, list)
}

// new returns an empty object.
func (s *apiServer) new(kind schema.GroupVersionKind) runtime.Object {
	o, err := s.scheme.New(kind)
	if err != nil {
		panic(err)
	}
	return o
}

func (s *apiServer) watch(w answer, r *http.Request, match func(metav1.Object) bool) {
	resource := path.Base(r.URL.Path)
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		from = s.version
		for _, o := range s.objects[resource] {
			if match(o) {
				s.event(w, resource, watch.Added, o)
			}
		}
		end := s.new(kinds[resource]).(metav1.Object)
		end.SetResourceVersion(strconv.Itoa(s.version))
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		s.event(w, resource, watch.Bookmark, end)
	} else if from < s.lost {
		s.send(w, kinds[resource], watch.Event{Type: watch.Error, Object: &apierrors.NewResourceExpired("too old").ErrStatus})
		return
	}
	defer context.AfterFunc(r.Context(), s.changed.Broadcast)()
	for epoch := s.epoch; s.epoch == epoch && r.Context().Err() == nil; s.changed.Wait() {
		for _, c := range s.log {
			if c.version > from && c.resource == resource {
				from = c.version
				s.deliver(w, c, match)
			}
		}
		w.ResponseWriter.(http.Flusher).Flush()
	}
}

// deliver tells of a change as it looks through a selector.
func (s *apiServer) deliver(w answer, c change, match func(metav1.Object) bool) {
	switch was, is := match(c.before), match(c.after); {
	case was && is:
		s.event(w, c.resource, watch.Modified, c.after)
	case is:
		s.event(w, c.resource, watch.Added, c.after)
	case was:
		s.event(w, c.resource, watch.Deleted, c.before)
	}
}

func (s *apiServer) event(w answer, resource string, kind watch.EventType, o metav1.Object) {
	s.send(w, kinds[resource], watch.Event{Type: kind, Object: o.(runtime.Object)})
}

func (s *apiServer) send(w answer, kind schema.GroupVersionKind, e watch.Event) {
	frames := streaming.NewEncoder(
		w.format.StreamSerializer.NewFrameWriter(w.ResponseWriter),
		s.codecs.EncoderForVersion(w.format.StreamSerializer, kind.GroupVersion()),
	)
	embedded := s.codecs.EncoderForVersion(w.format.Serializer, kind.GroupVersion())
	// A client that has gone away is no concern of the server.
	_ = restwatch.NewEncoder(frames, embedded).Encode(&e)
}

func (s *apiServer) write(w answer, o runtime.Object) {
	_ = s.codecs.EncoderForVersion(w.format.Serializer, corev1.SchemeGroupVersion).Encode(o, w.ResponseWriter)
}
