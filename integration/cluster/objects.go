package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// Create creates the Nodes, Services and EndpointSlices that are in YAML
// documents, and gives them the status that these have.
func (c *Cluster) Create(t testing.TB, documents []byte) {
	t.Helper()
	client := c.Client(t, Admin)
	objects, err := decode(documents)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if err := create(t.Context(), client, o); err != nil {
			t.Fatal(err)
		}
	}
}

func decode(documents []byte) ([]runtime.Object, error) {
	var objects []runtime.Object
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(documents)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

func create(ctx context.Context, client kubernetes.Interface, object runtime.Object) error {
	switch o := object.(type) {
	case *corev1.Node:
		return withStatus(ctx, client.CoreV1().Nodes(), o, func(made *corev1.Node) { made.Status = o.Status })
	case *corev1.Service:
		return withStatus(ctx, client.CoreV1().Services(o.Namespace), o, func(made *corev1.Service) { made.Status = o.Status })
	case *discoveryv1.EndpointSlice:
		_, err := client.DiscoveryV1().EndpointSlices(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
		return err
	default:
		return fmt.Errorf("create a %T: not a kind that a cluster of tests has", object)
	}
}

// A statusClient is the part of a typed client by which an object gets its
// status, which is not set by creating it.
type statusClient[T any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	UpdateStatus(context.Context, T, metav1.UpdateOptions) (T, error)
}

func withStatus[T any](ctx context.Context, client statusClient[T], object T, set func(T)) error {
	made, err := client.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	set(made)
	_, err = client.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	return err
}
