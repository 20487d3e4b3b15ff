package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// verdict is how the steps went.
type verdict struct {
	steps, skipped int
	// wrong has a line for each step that did not go as it should.
	wrong []string
}

func (v *verdict) add(title string, wrong []string) {
	v.steps++
	if len(wrong) > 0 {
		v.wrong = append(v.wrong, title+": "+strings.Join(wrong, "; "))
	}
}

// show is the demonstration from the making of the node to the verdict, and
// beyond it if the node is to remain.
func (d demo) show(ctx context.Context, dir string) (right bool, err error) {
	begin := time.Now()
	p := page{d.out}
	p.printf("nlproxy demo: a node in private namespaces of this process; nothing outside is touched\n\n")
	n, err := newNeighbourhood()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	p.stage("node", fmt.Sprintf("%d places to send from, %d servers", len(n.places), len(n.servers)), time.Since(begin))

	daemon, err := d.program(ctx, p, manifestsIn(dir))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, daemon.halt()) }()

	var v verdict
	if err := d.traffic(ctx, p, &v, n); err != nil {
		return false, err
	}
	if err := d.changes(ctx, p, &v, n, daemon, manifestsIn(dir)); err != nil {
		return false, err
	}
	p.verdict(v, time.Since(begin))
	if d.remain {
		err = d.stay(ctx, dir)
	}
	return len(v.wrong) == 0, err
}

// program starts the daemon and shows what it has programmed at first. The
// caller halts it.
func (d demo) program(ctx context.Context, p page, manifests string) (*daemon, error) {
	begin := time.Now()
	daemon, err := startDaemon(ctx, manifests, d.errs)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	report, err := daemon.synchronised(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("first synchronisation: %w", err), daemon.halt())
	}
	p.stage("start", "until all that follows was in the kernel:", time.Since(begin))
	for _, flag := range slices.Concat([]string{"nlproxy run"}, daemonFlags(manifests)) {
		p.printf("  %12s%s\n", "", flag)
	}
	tables, excerpt, err := inKernel("default/web")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("list the rules: %w", err), daemon.halt())
	}
	p.programmed(report, tables, excerpt)
	return daemon, nil
}

// traffic carries out the steps.
func (d demo) traffic(ctx context.Context, p page, v *verdict, n *neighbourhood) error {
	title := ""
	for _, s := range steps {
		if s.title != title {
			title = s.title
			p.heading(title)
		}
		r, err := interruptible(ctx, func() (result, error) { return s.carryOut(n.places), nil })
		if err != nil {
			return fmt.Errorf("%s: %w", title, err)
		}
		wrong := s.want.judge(r)
		p.step(s, r, wrong)
		if r.skipped != "" {
			v.skipped++
			continue
		}
		v.add(fmt.Sprintf("%s, %s", s.title, strings.Join(strings.Fields(s.flow()), " ")), wrong)
	}
	return nil
}

// changes carries out the live changes.
func (d demo) changes(ctx context.Context, p page, v *verdict, n *neighbourhood, daemon *daemon, dir string) error {
	const title = "Live change"
	p.heading(title)
	for _, c := range changes {
		t, err := interruptible(ctx, func() (transition, error) {
			return c.carryOut(ctx, n.places[c.from], daemon, d.manifests, dir)
		})
		if err != nil {
			return fmt.Errorf("%s, %s: %w", title, c.title, err)
		}
		p.change(c, t)
		v.add(title+", "+c.title, t.wrong)
	}
	return nil
}

// interruptible is fn, or the error of ctx once that is done: traffic under way
// then is left to itself and ends with the process.
func interruptible[T any](ctx context.Context, fn func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	ended := make(chan outcome, 1)
	go func() {
		value, err := fn()
		ended <- outcome{value, err}
	}()
	select {
	case o := <-ended:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
