package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/conntrack"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// recorder tells the API server what happens to this node, as events that
// "kubectl describe node" shows. It needs the right to create events of the
// group events.k8s.io in the namespace default.
//
// It stands in for client-go's tools/events, which brings a whole client set
// with it: 12 MB of a stripped program of 21 MB.
type recorder struct {
	client *rest.RESTClient
	node   string
}

// recordTimeout is how long an event may take to be recorded.
const recordTimeout = 10 * time.Second

// newRecorder returns a recorder for the node of that name.
func newRecorder(config *rest.Config, node string) (*recorder, error) {
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
	return &recorder{client, node}, nil
}

// newEvents returns the recorder of this node; nil if no API server is followed.
func newEvents(c config.Config) (*recorder, error) {
	if c.Manifests != "" {
		return nil, nil
	}
	client, err := clientConfig(c)
	if err != nil {
		return nil, err
	}
	o, err := sourceOptions(c, nil)
	if err != nil {
		return nil, err
	}
	return newRecorder(client, o.NodeName)
}

// watchFull warns when connection tracking is nearly full, in the log and, if
// there is a recorder, by an event of the node.
func watchFull(ctx context.Context, events *recorder, log *zap.Logger) {
	err := conntrack.WatchFull(ctx, conntrack.WatchFullOptions{
		Read:   conntrack.ReadStats,
		Logger: log,
		OnFull: func(s conntrack.Stats) {
			if events == nil {
				return
			}
			if err := events.tableFull(ctx, s); err != nil {
				log.Warn("an event was not recorded", zap.Error(err))
			}
		},
	})
	if err != nil {
		log.Warn("connection tracking is not watched", zap.Error(err))
	}
}

// tableFull records that connection tracking is nearly full. It waits for the
// API server, but for no longer than ten seconds.
func (r *recorder) tableFull(ctx context.Context, s conntrack.Stats) error {
	note := fmt.Sprintf("Connection tracking is %.0f %% full: %d of %d connections. New ones fail once it is full; see net.netfilter.nf_conntrack_max.",
		100*s.Fill(), s.Entries, s.Limit)
	return r.record(ctx, eventsv1.Event{
		Type:   corev1.EventTypeWarning,
		Reason: "ConntrackNearlyFull",
		Action: "TrackingConnections",
		Note:   note,
	})
}

// record completes an event and creates it.
func (r *recorder) record(ctx context.Context, e eventsv1.Event) error {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	e.GenerateName = r.node + "-"
	e.Namespace = metav1.NamespaceDefault // where events of what has no namespace are
	e.EventTime = metav1.NowMicro()
	e.ReportingController = "nlproxy"
	e.ReportingInstance = "nlproxy-" + r.node
	// kubectl and the kubelet take a node's name for its UID.
	e.Regarding = corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: r.node, UID: types.UID(r.node)}
	err := r.client.Post().Namespace(e.Namespace).Resource("events").Body(&e).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("record event %s of node %s: %w", e.Reason, r.node, err)
	}
	return nil
}
