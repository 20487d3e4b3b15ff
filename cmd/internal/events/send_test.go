package events

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// lines are the methods of requests, with the counts that they set.
func lines(all []request) (said []string) {
	for _, one := range all {
		method := one.line[:len(http.MethodPost)]
		if one.event.Series != nil {
			method += fmt.Sprint(" ", one.event.Series.Count)
		}
		said = append(said, method)
	}
	return said
}

func check(t *testing.T, a *api, when string, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, lines(a.take())); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func TestAnEventThatHappensAgainIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		r, _ := a.recorder(t, "node1")
		running(t, r)
		begin := time.Now()
		r.ServiceAside(web, errBroken)
		check(t, a, "first", "POST")
		time.Sleep(time.Minute)
		r.ServiceAside(web, fmt.Errorf("another"))
		synctest.Wait()
		again := a.take()
		if diff := cmp.Diff([]string{"PATC 2"}, lines(again)); diff != "" {
			t.Fatalf("second:\n%s", diff)
		}
		if at := again[0].event.Series.LastObservedTime.Time; !at.Equal(begin.Add(time.Minute)) {
			t.Errorf("it was last seen at %s, want %s", at, begin.Add(time.Minute))
		}
		for range 3 {
			time.Sleep(time.Minute)
			r.ServiceAside(web, errBroken)
			check(t, a, "later")
		}
		time.Sleep(2 * time.Minute)
		check(t, a, "six minutes after the start", "PATC 5")
		time.Sleep(quiet)
		check(t, a, "nothing more")
		r.ServiceAside(web, errBroken)
		check(t, a, "after a while", "POST")
	})
}

func TestAnEventThatTheAPIServerForgotIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		r, _ := a.recorder(t, "node1")
		running(t, r)
		r.Starting()
		check(t, a, "first", "POST")
		a.setStatus(http.MethodPatch, http.StatusNotFound)
		r.Starting()
		check(t, a, "second", "PATC 2", "POST 2")
	})
}

func TestEventsOfOneKindOfObjectAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		r, logs := a.recorder(t, "node1")
		running(t, r)
		service := func(i int) model.Name { return model.Name{Namespace: "shop", Name: fmt.Sprint("web-", i)} }
		for i := range 40 {
			r.ServiceAside(service(i), errBroken)
			synctest.Wait()
		}
		if got := len(a.take()); got != 25 || r.dropped.Load() != 15 {
			t.Errorf("%d events were sent and %d dropped, want 25 and 15", got, r.dropped.Load())
		}
		if logs.Len() != 1 || logs.All()[0].ContextMap()["name"] != "shop/web-25" {
			t.Errorf("log: %v", logs.All())
		}
		r.Starting()
		check(t, a, "of the node", "POST")
		time.Sleep(5 * time.Minute)
		r.ServiceAside(service(40), errBroken)
		r.ServiceAside(service(41), errBroken)
		check(t, a, "after five minutes", "POST")
	})
}

func TestAnAPIServerThatIsAwayHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		a.setStatus(http.MethodPost, 0)
		r, logs := a.recorder(t, "node1")
		running(t, r)
		begin := time.Now()
		r.Starting()
		synctest.Wait()
		for i := range 120 {
			r.Node(warning, fmt.Sprint("Reason", i), "Act", "")
		}
		if !time.Now().Equal(begin) || r.dropped.Load() != 20 {
			t.Errorf("it took %s, and %d events were dropped, want 20", time.Since(begin), r.dropped.Load())
		}
		time.Sleep(11 * (retry + retry/4))
		synctest.Wait()
		first := 0
		for _, one := range a.take() {
			if one.event.Reason == ReasonStarting {
				first++
			}
		}
		if first != 12 {
			t.Errorf("%d attempts, want 12", first)
		}
		if lost := logs.FilterMessage("an event was not recorded").All(); len(lost) != 1 || lost[0].ContextMap()["reason"] != ReasonStarting {
			t.Errorf("log: %v", lost)
		}
		a.setStatus(http.MethodPost, http.StatusCreated)
		time.Sleep(retry + retry/4)
		synctest.Wait()
		if got := len(a.take()); got != 24 { // the burst but the first
			t.Errorf("%d events were sent when it was back, want 24", got)
		}
	})
}

func TestARefusedEventIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		a.setStatus(http.MethodPost, http.StatusForbidden)
		r, logs := a.recorder(t, "node1")
		running(t, r)
		r.ServiceAside(web, errBroken)
		time.Sleep(time.Hour)
		check(t, a, "refused", "POST")
		if logs.Len() != 1 || logs.All()[0].ContextMap()["name"] != "shop/web" {
			t.Errorf("log: %v", logs.All())
		}
	})
}

func TestTheLastEventsAreSentBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		r, _ := a.recorder(t, "node1")
		answering := make(chan struct{})
		a.before = func() { <-answering }
		stop := running(t, r)
		r.Starting()
		synctest.Wait()
		r.HealthServerFailed(errBroken)
		go func() {
			time.Sleep(time.Second)
			close(answering)
		}()
		stop()
		check(t, a, "at the end", "POST", "POST")
	})
}

func TestTheEndIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		a.setStatus(http.MethodPost, 0)
		r, _ := a.recorder(t, "node1")
		for i := range 5 {
			r.Node(warning, fmt.Sprint("Reason", i), "Act", "")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begin := time.Now()
		r.Run(ctx)
		if took := time.Since(begin); took > grace {
			t.Errorf("it took %s", took)
		}
	})
}
