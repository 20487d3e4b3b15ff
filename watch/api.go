package watch

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// The selectors are those of kube-proxy 1.37 (cmd/kube-proxy/app/server.go):
// what other proxies or nobody serves, most of what there is in some clusters,
// does not even leave the server.
const (
	serviceLabels = "!" + labelProxyName
	serviceFields = "spec.clusterIP!=" + corev1.ClusterIPNone
	sliceLabels   = "!" + corev1.IsHeadlessService
)

// API returns a source that follows an API server. It does not connect before
// Run. Its requests are for lists that are streamed, where the server has them,
// and for protobuf, unless config has another ContentType or AcceptContentTypes.
func API(config *rest.Config, o Options) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	clients, err := newClients(config)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	return newAPI(clients, o.withDefaults(), nil), nil
}

// newAPI is API with a backoff between requests that fail; nil for client-go's.
func newAPI(c clients, o Options, backoff *wait.Backoff) *Source {
	kinds := []string{kindService, kindSlice}
	if o.NodeName != "" {
		kinds = append(kinds, kindNode)
	}
	s := &Source{facts: newFacts(o, kinds...), report: newReporter(o), options: o}
	reflectors := reflectors(c, o, s.facts, s.report, backoff)
	s.run = func(ctx context.Context) error {
		// A reflector speaks to klog alone; what matters is logged by
		// selection.
		ctx = klog.NewContext(ctx, klog.Logger{})
		var running sync.WaitGroup
		for _, r := range reflectors {
			running.Go(func() { r.RunWithContext(ctx) })
		}
		running.Wait()
		return nil
	}
	return s
}

// reflectors returns one for each kind of object.
func reflectors(c clients, o Options, f *facts, r *reporter, backoff *wait.Backoff) []*cache.Reflector {
	all := []*cache.Reflector{
		newReflector(backoff, &corev1.Service{}, serviceFeed(f, r), &selection{
			kind: kindService, from: c.services, access: c.access, labels: serviceLabels, fields: serviceFields, log: o.Logger,
		}),
		newReflector(backoff, &discoveryv1.EndpointSlice{}, sliceFeed(f, r), &selection{
			kind: kindSlice, from: c.slices, access: c.access, labels: sliceLabels, log: o.Logger,
		}),
	}
	if o.NodeName == "" {
		return all
	}
	return append(all, newReflector(backoff, &corev1.Node{}, ownNodeFeed(o, f, r), &selection{
		kind: kindNode, from: c.nodes, access: c.access, log: o.Logger,
		fields: fields.OneTermEqualSelector(metav1.ObjectNameField, o.NodeName).String(),
	}))
}

func newReflector(backoff *wait.Backoff, kind runtime.Object, to cache.ReflectorStore, from *selection) *cache.Reflector {
	return cache.NewReflectorWithOptions(from, kind, to, cache.ReflectorOptions{
		Logger: &klog.Logger{}, Name: from.kind, Backoff: backoff,
	})
}

// ownNode passes on what is known of one node.
type ownNode struct {
	name   model.Name
	origin string
	facts  *facts
	report *reporter
}

// ownNodeFeed is of the node that o names, which is not known until it arrives.
func ownNodeFeed(o Options, f *facts, r *reporter) *feed[*corev1.Node, seenNode] {
	own := &ownNode{name: model.Name{Name: o.NodeName}, origin: o.NodeNameOrigin, facts: f, report: r}
	f.loseNode(own.missing())
	feed := nodeFeed(f, r, own.set, own.replace)
	feed.awaited = own.name
	return feed
}

func (o *ownNode) missing() error {
	return nodeError{name: o.name.Name, origin: o.origin, lacks: lacksNode}
}

// set takes the node, nil if it is gone, and no other.
func (o *ownNode) set(n model.Name, node *seenNode) {
	switch {
	case n != o.name:
	case node == nil:
		f := findings{object: object{kindNode, n}}
		f.add("", "does not exist; what was known of it, if anything, stays in force")
		o.facts.loseNode(o.missing())
		o.report.set(f.object, f.list)
	default:
		o.facts.setNode(*node)
	}
}

// replace takes all nodes that were listed.
func (o *ownNode) replace(all map[model.Name]*seenNode) { o.set(o.name, all[o.name]) }
