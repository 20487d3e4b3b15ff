package apiserver

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/integration/daemon"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/integration/objects"
)

// started is a rig whose daemon has programmed these services.
func (r *rig) started(t *testing.T, services ...objects.Service) *daemon.Daemon {
	t.Helper()
	r.create(t, services...)
	d := daemon.Start(t, r.options(t))
	d.Await(t, "that all services are programmed", func(e daemon.Entry) bool {
		return daemon.IsReport(e) && e.Services == len(services)+1 // that of the API server
	})
	return d
}

func TestServicesGoOnWhileTheAPIServerIsAway(t *testing.T) {
	r := newRig(t)
	web, second := at("web", 1, r.Pods[1], r.Remote[0]), at("second", 2, r.Pods[1])
	d := r.started(t, web, second)
	generation := daemon.Generation(t, r.Self.Namespace)
	probing := probe(r.Pods[0], web)

	r.KillAPIServer()
	down := time.Now()
	d.Await(t, "that it cannot watch", func(e daemon.Entry) bool { return e.Error != "" })
	probing.Pass(t, 600)
	r.StartAPIServer(t)
	up := time.Now()
	if now := daemon.Generation(t, r.Self.Namespace); now != generation {
		t.Errorf("generation %d after the outage, before %d", now, generation)
	}
	second.Endpoints = objects.At(r.Pods[2])
	r.updateSlice(t, second)
	r.becomes(t, second, "pod-3")
	t.Logf("away for %s, caught up %s later; %d probes meanwhile",
		up.Sub(down), time.Since(up), probing.Stop(t))
	if now := daemon.Generation(t, r.Self.Namespace); now != generation+1 {
		t.Errorf("one change after the outage took %d transactions", now-generation)
	}
}

func TestStartWaitsForTheAPIServer(t *testing.T) {
	r := newRig(t)
	web := at("web", 1, r.Pods[1], r.Remote[0])
	d := r.started(t, web)
	generation := daemon.Generation(t, r.Self.Namespace)
	probing := probe(r.Pods[0], web)
	d.Kill()
	r.KillAPIServer()
	d = daemon.Start(t, r.options(t))
	away := d.Await(t, "that it cannot list", func(e daemon.Entry) bool { return e.Error != "" })
	probing.Pass(t, 200)
	r.StartAPIServer(t)
	report := d.Synchronised(t)
	if now := daemon.Generation(t, r.Self.Namespace); now != generation || report.Operations != 0 {
		t.Errorf("generation %d, before %d: %s", now, generation, report.Line)
	}
	t.Logf("%s; %d probes", away.Error, probing.Stop(t))
}

// changed makes one change of each kind, and returns what waits for them.
func (r *rig) changed(t *testing.T, round int) (arrived func()) {
	t.Helper()
	name := func(s string) string { return fmt.Sprintf("%s-%d", s, round) }
	created := at(name("created"), 20+round, r.Remote[1])
	deleted := at(name("deleted"), 30+round)
	updated := at(name("updated"), 40+round, r.Remote[2])
	r.create(t, created)
	r.remove(t, deleted)
	r.updateSlice(t, updated)
	return func() {
		r.becomes(t, created, "remote-2")
		r.becomes(t, updated, "remote-3")
		r.ends(t, deleted, lab.Unreachable)
	}
}

// TestWhatChangedMeanwhileIsCaughtUp holds the daemon by SIGSTOP, so that it
// meets all changes at once: those of a watch that went on, and those that no
// watch tells since the server is another one.
func TestWhatChangedMeanwhileIsCaughtUp(t *testing.T) {
	r := newRig(t)
	web := at("web", 1, r.Pods[1], r.Remote[0])
	all := []objects.Service{web}
	for round := range 2 {
		all = append(all,
			at(fmt.Sprintf("deleted-%d", round), 30+round, r.Pods[1]),
			at(fmt.Sprintf("updated-%d", round), 40+round, r.Pods[1]))
	}
	d := r.started(t, all...)
	probing := probe(r.Pods[0], web)
	for round, outage := range []func(){
		func() {},
		func() { r.KillAPIServer(); r.StartAPIServer(t) },
	} {
		signal(t, d, unix.SIGSTOP)
		outage()
		arrived := r.changed(t, round)
		probing.Pass(t, 100)
		signal(t, d, unix.SIGCONT)
		begin := time.Now()
		arrived()
		t.Logf("caught up after %s", time.Since(begin))
	}
	labtest.Answers(t, r.Pods[0], "tcp", web.ClusterIP(), "pod-2", "remote-1")
	t.Logf("%d probes", probing.Stop(t))
}

func signal(t *testing.T, d *daemon.Daemon, s unix.Signal) {
	t.Helper()
	if err := d.Signal(s); err != nil {
		t.Fatal(err)
	}
}
