package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/nlproxy/nlproxy/conntrack"
)

// recording is a recorder whose API server answers with status, and what was
// posted where.
func recording(t *testing.T, status int) (r *recorder, path *string, posted *eventsv1.Event) {
	t.Helper()
	path, posted = new(string), new(eventsv1.Event)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*path = r.Method + " " + r.URL.Path
		if err := json.NewDecoder(r.Body).Decode(posted); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(posted)
	}))
	t.Cleanup(server.Close)
	r, err := newRecorder(&rest.Config{Host: server.URL}, "node1")
	if err != nil {
		t.Fatal(err)
	}
	return r, path, posted
}

func TestAFullTableIsAnEventOfTheNode(t *testing.T) {
	r, path, got := recording(t, http.StatusCreated)
	before := time.Now().Add(-time.Second)
	if err := r.tableFull(t.Context(), conntrack.Stats{Entries: 95, Limit: 100}); err != nil {
		t.Fatal(err)
	}
	if *path != "POST /apis/events.k8s.io/v1/namespaces/default/events" {
		t.Error(*path)
	}
	if got.EventTime.Time.Before(before) || got.EventTime.After(time.Now()) {
		t.Errorf("it happened at %v", got.EventTime)
	}
	got.EventTime = metav1.MicroTime{}
	want := &eventsv1.Event{
		TypeMeta:            metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "Event"},
		ObjectMeta:          metav1.ObjectMeta{GenerateName: "node1-", Namespace: "default"},
		Type:                "Warning",
		Reason:              "ConntrackNearlyFull",
		Action:              "TrackingConnections",
		Note:                "Connection tracking is 95 % full: 95 of 100 connections. New ones fail once it is full; see net.netfilter.nf_conntrack_max.",
		ReportingController: "nlproxy",
		ReportingInstance:   "nlproxy-node1",
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "node1", UID: "node1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAnEventThatIsRefusedIsAnError(t *testing.T) {
	r, _, _ := recording(t, http.StatusForbidden)
	err := r.tableFull(t.Context(), conntrack.Stats{})
	if err == nil || !strings.HasPrefix(err.Error(), "record event ConntrackNearlyFull of node node1: ") {
		t.Errorf("got %v", err)
	}
}
