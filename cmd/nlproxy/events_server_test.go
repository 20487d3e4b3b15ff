package main

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/integration/cluster"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// An API server accepts the event, of one with kube-proxy's role, and shows it
// where kubectl looks for those of a node.
func TestAnAPIServerKeepsTheEventOfAFullTable(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server, which takes long to build and a while to start")
	}
	c := cluster.Start(t, labtest.Namespace(t), cluster.Options{})
	r, err := newRecorder(c.Config(cluster.KubeProxy), "node1")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.tableFull(t.Context(), conntrack.Stats{Entries: 91, Limit: 100}); err != nil {
		t.Fatal(err)
	}
	list, err := c.Client(t, cluster.Admin).CoreV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.kind=Node,involvedObject.name=node1,involvedObject.uid=node1"})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Type != "Warning" || !strings.HasPrefix(list.Items[0].Message, "Connection tracking is 91 % full") {
		t.Errorf("events: %+v", list.Items)
	}
	stranger, err := newRecorder(c.Config(cluster.ServiceAccount), "node1")
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.tableFull(t.Context(), conntrack.Stats{}); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("without the right: %v", err)
	}
}
