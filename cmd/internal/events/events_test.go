package events

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/rest"

	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

var (
	errBroken = errors.New("address already in use")
	web       = model.Name{Namespace: "shop", Name: "web"}
	ofNode    = corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "node1", UID: "node1"}
	ofWeb     = corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "web"}
)

func TestEventsAreWhatTheyAreCalled(t *testing.T) {
	for _, one := range []struct {
		record                     func(*Recorder)
		kind, reason, action, note string
		regarding                  corev1.ObjectReference
	}{
		{(*Recorder).Starting, "Normal", "Starting", "StartKubeProxy", "", ofNode},
		{func(r *Recorder) { r.HealthServerFailed(errBroken) },
			"Warning", "FailedToStartProxierHealthcheck", "StartKubeProxy", "address already in use", ofNode},
		{func(r *Recorder) { r.MetricsServerFailed(errBroken) },
			"Warning", "FailedToStartMetricServer", "StartKubeProxy", "address already in use", ofNode},
		{func(r *Recorder) { r.TableFull(conntrack.Stats{Entries: 95, Limit: 100}) },
			"Warning", "ConntrackNearlyFull", "TrackConnections",
			"Connection tracking is 95 % full: 95 of 100 connections. New ones fail once it is full; see net.netfilter.nf_conntrack_max.", ofNode},
		{func(r *Recorder) { r.ServiceHealthPortFailed(web, 30123, errBroken) },
			"Warning", "FailedToStartServiceHealthcheck", "Listen",
			"node node1: health check of service shop/web cannot be served on port 30123: address already in use", ofWeb},
		{func(r *Recorder) { r.ServiceAside(web, errors.New("no such file")) },
			"Warning", "ServiceNotProgrammed", "ProgramService",
			"node node1: the rules of service shop/web are refused, and tried again later: no such file", ofWeb},
	} {
		t.Run(one.reason, func(t *testing.T) {
			got, line := sent(t, one.record)
			namespace := "default"
			if one.regarding.Namespace != "" {
				namespace = one.regarding.Namespace
			}
			if want := "POST /apis/events.k8s.io/v1/namespaces/" + namespace + "/events"; line != want {
				t.Errorf("%s, want %s", line, want)
			}
			if !strings.HasPrefix(got.Name, one.regarding.Name+".") || got.Namespace != namespace {
				t.Errorf("event %s in %s", got.Name, got.Namespace)
			}
			got.TypeMeta, got.ObjectMeta = eventsv1.Event{}.TypeMeta, eventsv1.Event{}.ObjectMeta
			want := eventsv1.Event{
				Type: one.kind, Reason: one.reason, Action: one.action, Note: one.note, Regarding: one.regarding,
				ReportingController: "kube-proxy", ReportingInstance: "nlproxy-node1", EventTime: got.EventTime,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// sent is the only event that record makes a recorder send, at the time at
// which it was called, and where to.
func sent(t *testing.T, record func(*Recorder)) (e eventsv1.Event, line string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		r, _ := a.recorder(t, "node1")
		happened := time.Now()
		record(r)
		time.Sleep(time.Minute) // it waits for Run
		running(t, r)
		all := a.take()
		if len(all) != 1 || !all[0].event.EventTime.Time.Equal(happened) {
			t.Fatalf("%+v", all)
		}
		e, line = all[0].event, all[0].line
	})
	return e, line
}

// running runs r until t ends, and returns once it is at rest.
func running(t *testing.T, r *Recorder) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	synctest.Wait()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

func TestNobodyRecordsNothing(t *testing.T) {
	var r *Recorder
	r.Starting()
	r.HealthServerFailed(errBroken)
	r.MetricsServerFailed(errBroken)
	r.TableFull(conntrack.Stats{})
	r.ServiceHealthPortFailed(web, 1, errBroken)
	r.ServiceAside(web, errBroken)
	r.Run(t.Context())
}

func TestLongTextIsCutWhereACharacterEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		r, _ := a.recorder(t, strings.Repeat("n", 253))
		r.HealthServerFailed(errors.New("x" + strings.Repeat("ä", 1000)))
		running(t, r)
		all := a.take()
		if len(all) != 1 {
			t.Fatalf("%+v", all)
		}
		got := all[0].event
		if len(got.Note) != 1023 || !utf8.ValidString(got.Note) {
			t.Errorf("a note of %d bytes: %s", len(got.Note), got.Note)
		}
		if len(got.ReportingInstance) != 128 {
			t.Errorf("an instance of %d bytes", len(got.ReportingInstance))
		}
		if len(got.Name) > 253 {
			t.Errorf("a name of %d bytes", len(got.Name))
		}
	})
}

func TestARecorderNeedsANode(t *testing.T) {
	if _, err := New(&rest.Config{}, "", Options{}); err == nil || !strings.Contains(err.Error(), "name of the node") {
		t.Error(err)
	}
}
