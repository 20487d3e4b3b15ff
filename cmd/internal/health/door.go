package health

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/nlproxy/nlproxy/cmd/internal/serve"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"go.uber.org/zap"
)

// Run opens ports and answers on them until ctx is done. Then, and when a
// service or its port is gone, it closes them, and lets the requests that are
// under way end. It is called once.
func (p *Ports) Run(ctx context.Context) {
	d := newDoors(p)
	defer d.close()
	retry := time.NewTimer(p.opts.Retry)
	retry.Stop() // until something fails
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-retry.C:
		}
		d.settle(ctx, p.wanted(d.failed))
		if len(d.failed) > 0 {
			retry.Reset(p.opts.Retry)
		}
	}
}

// wanted says where the checks that moved, and those that failed before, are to
// listen.
func (p *Ports) wanted(failed map[*check]bool) map[*check][]place {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := make(map[*check][]place, len(p.moved)+len(failed))
	for _, checks := range []map[*check]bool{p.moved, failed} {
		for c := range checks {
			wanted[c] = p.places(c)
		}
	}
	clear(p.moved)
	return wanted
}

// lost says that c does not listen any more where it should.
func (p *Ports) lost(c *check, err error) {
	p.opts.Logger.Warn("a health check port was lost and is opened again",
		zap.Stringer("service", c.service), zap.Uint16("port", c.port), zap.Error(err))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved[c] = true
	p.stir()
}

// doors are the sockets that listen. They belong to the goroutine of Run, and
// all share one HTTP server: what a connection came in by says what is asked.
type doors struct {
	ports   *Ports
	server  *http.Server
	open    map[*check]map[place]*door
	failed  map[*check]bool
	serving sync.WaitGroup
}

// door is a socket that listens.
type door struct {
	net.Listener
	check *check
	ended chan struct{} // closed when nobody serves it any more
}

func newDoors(p *Ports) *doors {
	d := &doors{
		ports:  p,
		server: serve.HTTP(http.HandlerFunc(p.answer), p.opts.Logger),
		open:   map[*check]map[place]*door{},
		failed: map[*check]bool{},
	}
	d.server.BaseContext = func(l net.Listener) context.Context {
		return context.WithValue(context.Background(), asked{}, l.(*door).check)
	}
	return d
}

func (d *doors) close() {
	serve.Stop(d.server)
	d.serving.Wait()
	d.ports.failing.Store(0)
}

// settle has the checks listen where they are wanted and nowhere else. All is
// closed before anything is opened, since a port may go from one service to
// another; of two that want the same port the one keeps it that has it.
func (d *doors) settle(ctx context.Context, wanted map[*check][]place) {
	for c, places := range wanted {
		d.shut(c, places)
	}
	for _, c := range slices.SortedFunc(maps.Keys(wanted), byService) {
		err := d.openAll(ctx, c, wanted[c])
		if ctx.Err() != nil {
			return
		}
		d.report(c, err)
	}
	d.ports.failing.Store(int64(len(d.failed)))
}

func byService(a, b *check) int { return model.Name.Compare(a.service, b.service) }

// shut closes the doors of c but those at places.
func (d *doors) shut(c *check, places []place) {
	for at, door := range d.open[c] {
		if slices.Contains(places, at) && !door.hasEnded() {
			continue
		}
		door.Close()
		<-door.ended
		delete(d.open[c], at)
	}
	if len(d.open[c]) == 0 {
		delete(d.open, c)
	}
}

func (d *door) hasEnded() bool {
	select {
	case <-d.ended:
		return true
	default:
		return false
	}
}

// openAll opens the doors of c that are missing. One that cannot be opened
// keeps no other from it.
func (d *doors) openAll(ctx context.Context, c *check, places []place) error {
	var failures []error
	for _, at := range places {
		if d.open[c][at] != nil {
			continue
		}
		listener, err := d.ports.listen(ctx, at)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if d.open[c] == nil {
			d.open[c] = map[place]*door{}
		}
		d.open[c][at] = d.serve(listener, c)
	}
	return errors.Join(failures...)
}

func (d *doors) serve(listener net.Listener, c *check) *door {
	at := &door{listener, c, make(chan struct{})}
	d.serving.Go(func() {
		err := d.server.Serve(at)
		close(at.ended)
		if !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
			d.ports.lost(c, err)
		}
	})
	return at
}

// report tells of the first failure in a row.
func (d *doors) report(c *check, err error) {
	if err == nil {
		delete(d.failed, c)
		return
	}
	if d.failed[c] {
		return
	}
	d.failed[c] = true
	d.ports.opts.Logger.Warn("a health check port cannot be opened; trying again until it can",
		zap.Stringer("service", c.service), zap.Uint16("port", c.port), zap.Duration("every", d.ports.opts.Retry), zap.Error(err))
	d.ports.opts.Failed(c.service, c.port, err)
}
