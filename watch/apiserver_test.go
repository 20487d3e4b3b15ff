package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apiServer speaks as much of lists and watches as a source needs, and can be
// told to be old, forgetful, or away.
type apiServer struct {
	*httptest.Server
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
	s := &apiServer{
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

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	w.Header().Set("Content-Type", "application/json")
	if status := s.refusal(q); status != nil {
		w.WriteHeader(int(status.ErrStatus.Code))
		s.write(w, status.ErrStatus)
		return
	}
	match := s.selector(q)
	if q.Get("watch") == "true" {
		s.watch(w, r, match)
		return
	}
	s.list(w, path.Base(r.URL.Path), match)
}

func (s *apiServer) refusal(q url.Values) *apierrors.StatusError {
	switch {
	case s.away:
		return apierrors.NewServiceUnavailable("away")
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
var kinds = map[string]metav1.TypeMeta{
	"services":       {APIVersion: "v1", Kind: "Service"},
	"nodes":          {APIVersion: "v1", Kind: "Node"},
	"endpointslices": {APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
}

func (s *apiServer) list(w http.ResponseWriter, resource string, match func(metav1.Object) bool) {
	var items []metav1.Object
	for _, o := range s.objects[resource] {
		if match(o) {
			items = append(items, o)
		}
	}
	s.write(w, map[string]any{
		"apiVersion": kinds[resource].APIVersion,
		"kind":       kinds[resource].Kind + "List",
		"metadata":   map[string]any{"resourceVersion": strconv.Itoa(s.version)},
		"items":      items,
	})
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, match func(metav1.Object) bool) {
	resource := path.Base(r.URL.Path)
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		from = s.version
		for _, o := range s.objects[resource] {
			if match(o) {
				s.event(w, resource, "ADDED", o)
			}
		}
		s.event(w, resource, "BOOKMARK", &metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(s.version),
			Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		})
	} else if from < s.lost {
		s.write(w, map[string]any{"type": "ERROR", "object": apierrors.NewResourceExpired("too old").ErrStatus})
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
		w.(http.Flusher).Flush()
	}
}

// deliver tells of a change as it looks through a selector.
func (s *apiServer) deliver(w http.ResponseWriter, c change, match func(metav1.Object) bool) {
	switch was, is := match(c.before), match(c.after); {
	case was && is:
		s.event(w, c.resource, "MODIFIED", c.after)
	case is:
		s.event(w, c.resource, "ADDED", c.after)
	case was:
		s.event(w, c.resource, "DELETED", c.before)
	}
}

func (s *apiServer) event(w http.ResponseWriter, resource, kind string, o metav1.Object) {
	object := map[string]any{}
	if meta, ok := o.(*metav1.ObjectMeta); ok {
		object["metadata"] = meta
	} else if err := remarshal(o, &object); err != nil {
		panic(err)
	}
	object["apiVersion"], object["kind"] = kinds[resource].APIVersion, kinds[resource].Kind
	s.write(w, map[string]any{"type": kind, "object": object})
}

func remarshal(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

func (s *apiServer) write(w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
}
