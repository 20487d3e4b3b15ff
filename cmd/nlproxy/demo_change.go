package main

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/integration/lab"
)

// changeWait is how long a change may take to be in effect.
const changeWait = 5 * time.Second

// change is a manifest that takes the place of another while its service is
// used.
type change struct {
	title string
	// file is what to write over liveManifest.
	file string
	from string
	to   netip.AddrPort
	// before and after are what comes of connections until the change is in
	// effect, and from then on: nothing else may happen in between.
	before, after want
}

const liveManifest = "live.yaml"

var changes = []change{
	{"the only endpoint goes", "change/removed.yaml", "pod-3", at("10.96.0.24:80"), by("pod-1"), refused},
	{"another endpoint comes", "change/added.yaml", "pod-3", at("10.96.0.24:80"), refused, by("pod-2")},
}

// transition is what came of a change.
type transition struct {
	// effect is the time from the file's replacement to the first connection
	// that went the new way, and before how many went the old way till then.
	effect time.Duration
	before int
	report dataplane.Report
	wrong  []string
}

// carryOut replaces the manifest in dir by that of manifests and connects again
// and again, until the change is in effect.
func (c change) carryOut(ctx context.Context, from *lab.Place, d *daemon, manifests fs.FS, dir string) (transition, error) {
	content, err := fs.ReadFile(manifests, c.file)
	if err != nil {
		return transition{}, err
	}
	d.forget()
	start := time.Now()
	if err := replace(filepath.Join(dir, liveManifest), content); err != nil {
		return transition{}, err
	}
	t := c.watch(ctx, from, start)
	if len(t.wrong) == 0 {
		t.report, err = d.synchronised(ctx)
	}
	return t, err
}

// watch connects until the outcome is that of after.
func (c change) watch(ctx context.Context, from *lab.Place, start time.Time) (t transition) {
	for underWay := c.underWay(); ctx.Err() == nil; {
		sent := time.Now()
		outcome := from.Dial("tcp", c.to, lab.DialOptions{})
		switch {
		case c.after.is(outcome):
			t.effect = sent.Sub(start)
			return t
		case outcome.Kind == lab.Unreachable && underWay > 0:
			underWay--
			continue
		case !c.before.is(outcome):
			t.wrong = []string{fmt.Sprintf("in between: %s", outcome)}
			return t
		case sent.Sub(start) > changeWait:
			t.wrong = []string{fmt.Sprintf("not in effect after %v: still %s", changeWait, outcome)}
			return t
		}
		t.before++
	}
	return t
}

// underWay is how many connections may be answered by a router: one, where a
// service gets its first endpoint. A packet between two hooks then meets the old
// rules at the first, which do not translate it, and the new ones at the second,
// which do not refuse it, since each hook reads anew which are in force
// (nft_do_chain in net/netfilter/nf_tables_core.c, 6.18). So it leaves the node.
func (c change) underWay() int {
	if c.before.kind == lab.Refused && c.after.kind == lab.Answered {
		return 1
	}
	return 0
}

// is reports whether one outcome is among those that w allows.
func (w want) is(o lab.Outcome) bool {
	return o.Kind == w.kind && (o.Kind != lab.Answered || o.By == w.by[0])
}

// replace gives the file at path a new content at one moment.
func replace(path string, content []byte) error {
	next := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
