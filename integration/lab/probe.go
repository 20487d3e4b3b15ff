package lab

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// defaultRate is how many probes go out in a second.
const defaultRate = 200

// ProbeOptions say how to probe. The zero value is 200 probes a second, each
// of which may take four.
type ProbeOptions struct {
	// Rate is in probes per second; 0 means 200.
	Rate int
	// Dial is how each probe dials.
	Dial DialOptions
}

// A Prober dials at a fixed rate, whatever becomes of the attempts before, and
// keeps every one that was not answered.
type Prober struct {
	place   *Place
	network string
	to      netip.AddrPort
	options DialOptions
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	report  Report
	changed chan struct{} // closed and made anew with every outcome
}

// A Report is what a Prober has found.
type Report struct {
	// Sent is how many probes went out and ended, Answered how many of them
	// were answered.
	Sent, Answered int
	// Failures are the others, in the order of their ends.
	Failures []Failure
}

// A Failure is a probe that was not answered.
type Failure struct {
	// Start is when the probe went out, End when its outcome was known.
	Start, End time.Time
	Outcome    Outcome
}

func (f Failure) String() string {
	return fmt.Sprintf("%s: %s", f.End.Format("15:04:05.000"), f.Outcome)
}

// Probe starts to dial from p. The caller stops it.
func (p *Place) Probe(network string, to netip.AddrPort, o ProbeOptions) *Prober {
	if o.Rate <= 0 {
		o.Rate = defaultRate
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Prober{place: p, network: network, to: to, options: o.Dial, stop: stop, changed: make(chan struct{})}
	r.running.Go(func() { r.run(ctx, time.Second/time.Duration(o.Rate)) })
	return r
}

// Await waits until n more probes have ended, or ctx is done.
func (r *Prober) Await(ctx context.Context, n int) error {
	report, changed := r.state()
	for end := report.Sent + n; report.Sent < end; report, changed = r.state() {
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %d more probes of %s: %w", end-report.Sent, r.to, ctx.Err())
		}
	}
	return nil
}

// Stop sends no more probes, waits for those that are under way, and returns
// what all have found.
func (r *Prober) Stop() Report {
	r.stop()
	r.running.Wait()
	report, _ := r.state()
	return report
}

// run starts the probes that are due. A tick that comes late makes up for
// those that it hides.
func (r *Prober) run(ctx context.Context, interval time.Duration) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	begin, started := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticks.C:
			for due := int(now.Sub(begin) / interval); started < due; started++ {
				r.running.Go(r.once)
			}
		}
	}
}

func (r *Prober) once() {
	start := time.Now()
	r.add(start, r.place.Dial(r.network, r.to, r.options))
}

func (r *Prober) add(start time.Time, o Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Sent++
	if o.Kind == Answered {
		r.report.Answered++
	} else {
		r.report.Failures = append(r.report.Failures, Failure{start, time.Now(), o})
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *Prober) state() (Report, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report, r.changed
}
