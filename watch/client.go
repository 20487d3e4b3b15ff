package watch

import (
	"cmp"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
)

// clients lists and watches the kinds of object that a source follows.
//
// They stand in for a client set, which brings every API group there is into
// the program.
type clients struct {
	services, slices, nodes *cache.ListWatch
	access                  access
}

func newClients(config *rest.Config) (clients, error) {
	scheme, err := newScheme()
	if err != nil {
		return clients{}, err
	}
	config = withDefaults(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return clients{}, err
	}
	core, err := client(config, transport, "/api", corev1.SchemeGroupVersion)
	if err != nil {
		return clients{}, err
	}
	discovery, err := client(config, transport, "/apis", discoveryv1.SchemeGroupVersion)
	if err != nil {
		return clients{}, err
	}
	return clients{
		services: everywhere(core, "services"),
		slices:   everywhere(discovery, "endpointslices"),
		nodes:    everywhere(core, "nodes"),
		access:   accessOf(config),
	}, nil
}

// withDefaults returns a copy of config that asks for protobuf, or else JSON,
// unless it says otherwise, and whose rate of requests is that of all clients
// together, as it is in a client set.
func withDefaults(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = cmp.Or(config.ContentType, runtime.ContentTypeProtobuf)
	if config.AcceptContentTypes == "" && config.ContentType == runtime.ContentTypeProtobuf {
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	config.UserAgent = cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent())
	if config.RateLimiter == nil && config.QPS >= 0 {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(
			cmp.Or(config.QPS, rest.DefaultQPS), cmp.Or(config.Burst, rest.DefaultBurst))
	}
	return config
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

func client(config *rest.Config, transport *http.Client, path string, gv schema.GroupVersion) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.APIPath = path
	config.GroupVersion = &gv
	return rest.RESTClientForConfigAndClient(config, transport)
}

// everywhere lists and watches a resource in all namespaces, with the selectors
// that are asked for.
func everywhere(c *rest.RESTClient, resource string) *cache.ListWatch {
	return cache.NewFilteredListWatchFromClient(c, resource, metav1.NamespaceAll, func(*metav1.ListOptions) {})
}
