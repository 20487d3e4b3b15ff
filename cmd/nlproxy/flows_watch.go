package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane/model"
	ct "github.com/ti-mo/conntrack"
	"github.com/ti-mo/netfilter"
	"golang.org/x/sys/unix"
)

// watchFlows prints what becomes of flows until ctx is done. What the kernel
// could not deliver in time is lost, which is complained of.
func watchFlows(ctx context.Context, only flowFilter, names *serviceNames, out, complaints io.Writer) error {
	w := flowWatch{only: only, names: names, columns: columns{out: out}, complaints: complaints}
	for first := true; ; first = false {
		l, err := listenFlows()
		if err != nil {
			return err
		}
		if first {
			err = w.columns.print(append([]string{"TIME", "EVENT"}, flowHeader...))
		}
		if err == nil {
			err = w.follow(ctx, l)
		}
		l.close()
		if err == nil || !errors.Is(err, unix.ENOBUFS) {
			return err
		}
		fmt.Fprintln(complaints, "connections change so fast that some events were lost")
	}
}

type flowWatch struct {
	only       flowFilter
	names      *serviceNames
	columns    columns
	complaints io.Writer
}

// follow returns nil once ctx is done.
func (w *flowWatch) follow(ctx context.Context, l *flowListener) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-l.failed:
			return fmt.Errorf("listen for connections: %w", err)
		case e := <-l.events:
			if err := w.tell(e); err != nil {
				return err
			}
		}
	}
}

// tell prints an event about a flow through a service.
func (w *flowWatch) tell(e ct.Event) error {
	f, ok := flowOf(e)
	if !ok {
		return nil
	}
	if err := w.names.refresh(); err != nil {
		fmt.Fprintf(w.complaints, "names of services may be out of date: %v\n", err)
	}
	name, ok := w.names.of(&f)
	if !ok || !w.only.wants(&f, name) {
		return nil
	}
	line := []string{time.Now().Format("15:04:05.000"), eventName(e)}
	return w.columns.print(append(line, serviceFlow{f, name}.cells()...))
}

func eventName(e ct.Event) string {
	switch e.Type {
	case ct.EventNew:
		return "new"
	case ct.EventDestroy:
		return "end"
	}
	return "update"
}

// flowOf returns the flow of an event, if it is of TCP, UDP or SCTP.
func flowOf(e ct.Event) (f conntrack.Flow, ok bool) {
	if e.Flow == nil {
		return f, false
	}
	f = conntrack.Flow{
		Protocol: model.Protocol(e.Flow.TupleOrig.Proto.Protocol),
		Original: tupleOf(e.Flow.TupleOrig),
		Reply:    tupleOf(e.Flow.TupleReply),
		Zone:     e.Flow.Zone,
		ID:       e.Flow.ID,
		Status:   e.Flow.Status,
		Timeout:  e.Flow.Timeout,
	}
	if tcp := e.Flow.ProtoInfo.TCP; tcp != nil {
		f.TCPState = tcp.State
	}
	switch f.Protocol {
	case model.TCP, model.UDP, model.SCTP:
		ok = f.Original.Destination.IsValid()
	}
	if ok {
		f.Family = model.FamilyOf(f.Original.Destination.Addr())
	}
	return f, ok
}

func tupleOf(t ct.Tuple) conntrack.Tuple {
	return conntrack.Tuple{
		Source:      netip.AddrPortFrom(t.IP.SourceAddress, t.Proto.SourcePort),
		Destination: netip.AddrPortFrom(t.IP.DestinationAddress, t.Proto.DestinationPort),
	}
}

// flowListener hears of changes to flows.
type flowListener struct {
	conn   *ct.Conn
	events chan ct.Event
	failed chan error
}

// listenBuffer holds some 10,000 events.
const listenBuffer = 8 << 20

// flowGroups are the multicast groups of events about flows.
var flowGroups = []netfilter.NetlinkGroup{netfilter.GroupCTNew, netfilter.GroupCTUpdate, netfilter.GroupCTDestroy}

func listenFlows() (*flowListener, error) {
	conn, err := ct.Dial(nil)
	if err != nil {
		return nil, fmt.Errorf("listen for connections: %w", err)
	}
	l := &flowListener{conn: conn, events: make(chan ct.Event, 64)}
	err = conn.SetReadBuffer(listenBuffer)
	if err == nil {
		l.failed, err = conn.Listen(l.events, 1, flowGroups)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen for connections: %w", err), conn.Close())
	}
	return l, nil
}

// close takes what is still under way, since the connection waits for that.
func (l *flowListener) close() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		l.conn.Close()
	}()
	for {
		select {
		case <-closed:
			return
		case <-l.events:
		case <-l.failed:
		}
	}
}
