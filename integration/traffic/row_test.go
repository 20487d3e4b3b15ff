package traffic

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// client is the pod that most rows start at. It serves nothing there.
const client = "pod-3"

// A row is an attempt and what must come of it.
type row struct {
	from string
	to   service
	by   frontend
	want want
	// only, "IPv4" or "IPv6", limits the row to one family.
	only string
}

// everybody is one place of each kind that traffic starts at.
func everybody() []string { return []string{client, "node", "outside"} }

// fromAll makes rows for each combination of where from and where to.
func fromAll(places []string, to service, w want, frontends ...frontend) []row {
	var rows []row
	for _, from := range places {
		for _, by := range frontends {
			rows = append(rows, row{from: from, to: to, by: by, want: w})
		}
	}
	return rows
}

// A want is what must come of an attempt.
type want struct {
	kind lab.Kind
	// places are all that must answer sooner or later; no other may.
	places []string
	// masqueraded says that the server sees an address of the node.
	masqueraded bool
}

// kept: one of these answers, and sees the client's address.
func kept(places ...string) want { return want{kind: lab.Answered, places: places} }

// masqueraded: one of these answers, and sees the node's address.
func masqueraded(places ...string) want {
	return want{kind: lab.Answered, places: places, masqueraded: true}
}

// refused: the client is told at once.
func refused() want { return want{kind: lab.Refused} }

// dropped: the client hears nothing.
func dropped() want { return want{kind: lab.TimedOut} }

// untouched: no rule is about it, and it leaves the node as it came.
func untouched() want { return want{kind: lab.Unreachable} }

const (
	// atOnce is how soon a refusal must be there: before TCP sends a lost SYN
	// again.
	atOnce = 900 * time.Millisecond
	// again is when TCP sends a SYN for the second time. In this lab, where a
	// packet and its answer need no time, an ICMP error meets a socket that
	// connect still holds, which IPv6 heeds only when it sends again
	// (tcp_v6_err, net/ipv6/tcp_ipv6.c, Linux 6.18: TcpExtLockDroppedIcmps).
	again = time.Second
	// silence is for how long nothing has to come back to count as dropped.
	silence = 400 * time.Millisecond
	// answers is how often a service is asked at least, and tries how often at
	// most until all its endpoints have answered: with three, one is missed
	// three times in 10¹⁷.
	answers, tries = 4, 100
	// abreast is how many attempts are under way at a time.
	abreast = 16
)

// check makes the attempts of all rows, over all networks and families, some
// at a time.
func (p *proxy) check(t *testing.T, rows []row) {
	t.Helper()
	left := p.leaving(t, rows)
	var running sync.WaitGroup
	slots := make(chan struct{}, abreast)
	for _, r := range rows {
		for _, a := range p.attempts(t, r) {
			slots <- struct{}{}
			running.Go(func() {
				if err := a.make(); err != nil {
					t.Errorf("%s to %s at %s, %s: %v", a.from, r.to.name, a.to, a.network, err)
				}
				<-slots
			})
		}
	}
	running.Wait()
	left(t)
}

// An attempt is a row over one network and family.
type attempt struct {
	want
	proxy   *proxy
	from    *lab.Place
	network string
	to      netip.AddrPort
}

func (p *proxy) attempts(t *testing.T, r row) []attempt {
	t.Helper()
	from := p.place(t, r.from)
	var all []attempt
	for _, network := range networks() {
		for _, v6 := range []bool{false, true} {
			if r.only == "IPv4" && v6 || r.only == "IPv6" && !v6 {
				continue
			}
			all = append(all, attempt{r.want, p, from, network, r.by(r.to, v6)})
		}
	}
	return all
}

// reach is Dial, each time from a port that was not used before: the kernel
// treats packets as it did the ones before them of the same connection, by its
// tuple, whatever the rules have become.
func (p *proxy) reach(from *lab.Place, network string, to netip.AddrPort, o lab.DialOptions) lab.Outcome {
	const first, count = 40000, 25000 // behind all node ports
	o.LocalPort = uint16(first + p.sent.Add(1)%count)
	return from.Dial(network, to, o)
}

func (a attempt) make() error {
	start := time.Now()
	switch a.kind {
	case lab.Answered:
		return a.ask()
	case lab.Unreachable:
		// Whether the router has time to say so does not matter.
		got := a.proxy.reach(a.from, a.network, a.to, lab.DialOptions{Timeout: silence})
		if got.Kind != lab.TimedOut {
			return a.expect(got)
		}
		return nil
	case lab.TimedOut:
		return a.expect(a.proxy.reach(a.from, a.network, a.to, lab.DialOptions{Timeout: silence}))
	}
	limit := atOnce
	if a.network == "tcp" && a.to.Addr().Is6() {
		limit += again
	}
	err := a.expect(a.proxy.reach(a.from, a.network, a.to, lab.DialOptions{Timeout: limit + again}))
	if took := time.Since(start); err == nil && took > limit {
		return fmt.Errorf("%s only after %s", a.kind, took)
	}
	return err
}

// ask asks until all who are to answer have.
func (a attempt) ask() error {
	missing := slices.Clone(a.places)
	for i := 0; i < answers || len(missing) > 0; i++ {
		if i == tries {
			return fmt.Errorf("%s did not answer", strings.Join(missing, ", "))
		}
		got := a.proxy.reach(a.from, a.network, a.to, lab.DialOptions{})
		if err := a.expect(got); err != nil {
			return err
		}
		source := a.from.IPv4()
		switch v6 := a.to.Addr().Is6(); {
		case a.masqueraded:
			source = nodeTowards(got.By, v6)
		case v6:
			source = a.from.IPv6()
		}
		if got.Source.Addr() != source {
			return fmt.Errorf("%s, want source %s", got, source)
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == got.By })
	}
	return nil
}

func (w want) expect(got lab.Outcome) error {
	if got.Kind != w.kind || w.kind == lab.Answered && !slices.Contains(w.places, got.By) {
		return fmt.Errorf("%s, want %s %v", got, w.kind, w.places)
	}
	return nil
}

// nodeTowards is the node's address on the link to a place, which masquerade
// takes.
func nodeTowards(place string, v6 bool) netip.Addr {
	addresses := [2]string{"192.168.7.1", "fd00:7::1"}
	if nodeOf(place) == "node1" {
		addresses = [2]string{"10.244.1.1", "fd00:244:1::1"}
	}
	if v6 {
		return netip.MustParseAddr(addresses[1])
	}
	return netip.MustParseAddr(addresses[0])
}
