package cluster

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// eventPatience is how long it may take until something is an event.
const eventPatience = time.Minute

// AwaitEvents waits until there is an event of each of these reasons, by a
// reporter whose instance begins so, and returns them by reason.
func (c *Cluster) AwaitEvents(t testing.TB, instance string, reasons ...string) map[string]eventsv1.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventPatience)
	defer cancel()
	watching, err := c.Client(t, Admin).EventsV1().Events(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	found := map[string]eventsv1.Event{}
	for len(found) < len(reasons) {
		change, ok := <-watching.ResultChan()
		if !ok {
			t.Fatalf("of %v, %s has recorded no more than %v", reasons, instance, found)
		}
		e, ok := change.Object.(*eventsv1.Event)
		if ok && strings.HasPrefix(e.ReportingInstance, instance) && slices.Contains(reasons, e.Reason) {
			found[e.Reason] = *e
		}
	}
	return found
}
