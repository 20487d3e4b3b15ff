package watch

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// clients lists and watches the kinds of object that a source follows.
//
// They stand in for a client set, which brings every API group there is into
// the program.
type clients struct {
	services, slices, nodes *cache.ListWatch
}

func newClients(config *rest.Config) (clients, error) {
	scheme, err := newScheme()
	if err != nil {
		return clients{}, err
	}
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
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
	}, nil
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
