package events

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record/util"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

const (
	// controller is what kube-proxy calls itself in its events.
	controller = "kube-proxy"
	// queued is how many events may wait to be sent.
	queued = 100
	// Longer notes and instances are refused (pkg/apis/core/validation/events.go,
	// Kubernetes 1.37).
	noteLimit, instanceLimit = 1024, 128
)

// Options configures a Recorder. The zero value is usable.
type Options struct {
	// Logger is warned of events that were not recorded; nil for none.
	Logger *zap.Logger
}

// Recorder records events of a node and of services.
//
// It stands in for client-go's tools/events, which brings a whole client set
// with it: 12 MB of a stripped program of 21 MB.
type Recorder struct {
	client  *rest.RESTClient
	node    string
	log     *zap.Logger
	queue   chan *eventsv1.Event
	dropped atomic.Uint64
}

// New returns a recorder for the node of that name. Nothing is sent before Run.
func New(config *rest.Config, node string, o Options) (*Recorder, error) {
	if node == "" {
		return nil, errors.New("events: the name of the node is missing")
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, eventsv1.SchemeGroupVersion)
	if err := eventsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	config = rest.CopyConfig(config)
	config.APIPath = "/apis"
	config.GroupVersion = &eventsv1.SchemeGroupVersion
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return &Recorder{client: client, node: node, log: o.Logger, queue: make(chan *eventsv1.Event, queued)}, nil
}

// Node records an event of the node. Kind is Normal or Warning.
func (r *Recorder) Node(kind, reason, action, note string) {
	if r == nil {
		return
	}
	// kubectl and the kubelet take a node's name for its UID, and kubectl
	// describe shows no event without one.
	r.add(kind, reason, action, note, corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: r.node, UID: types.UID(r.node)})
}

// Service records an event of a service. Kind is Normal or Warning.
func (r *Recorder) Service(name model.Name, kind, reason, action, note string) {
	if r == nil {
		return
	}
	r.add(kind, reason, action, note, corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: name.Namespace, Name: name.Name})
}

func (r *Recorder) add(kind, reason, action, note string, regarding corev1.ObjectReference) {
	now := metav1.NowMicro()
	namespace := regarding.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where events of what has no namespace are
	}
	e := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: util.GenerateEventName(regarding.Name, now.UnixNano()), Namespace: namespace},
		EventTime:           now,
		Type:                kind,
		Reason:              reason,
		Action:              action,
		Note:                cut(note, noteLimit),
		Regarding:           regarding,
		ReportingController: controller,
		ReportingInstance:   cut("nlproxy-"+r.node, instanceLimit),
	}
	select {
	case r.queue <- e:
	default:
		r.drop(e)
	}
}

// drop counts an event that is lost. Only the first is logged: there are many.
func (r *Recorder) drop(e *eventsv1.Event) {
	if r.dropped.Add(1) == 1 {
		r.log.Warn("there are too many events; some are not recorded", describe(e)...)
	}
}

// describe are the fields of the log that tell one event from others.
func describe(e *eventsv1.Event) []zap.Field {
	return []zap.Field{
		zap.String("reason", e.Reason), zap.String("kind", e.Regarding.Kind),
		zap.String("name", strings.TrimPrefix(e.Regarding.Namespace+"/"+e.Regarding.Name, "/")),
	}
}

// cut is the beginning of s, of at most limit bytes and whole characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}

// create and patch are one attempt each, of at most attemptTimeout.
func (r *Recorder) create(ctx context.Context, e *eventsv1.Event) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	return r.client.Post().Namespace(e.Namespace).Resource("events").Body(e).Do(ctx).Error()
}

func (r *Recorder) patch(ctx context.Context, e *eventsv1.Event, patch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	return r.client.Patch(types.MergePatchType).Namespace(e.Namespace).Resource("events").Name(e.Name).Body(patch).Do(ctx).Error()
}
