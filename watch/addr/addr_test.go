package addr

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// answer is one list of a fake kernel.
type answer struct {
	addrs []netip.Addr
	err   error
}

// fake is a kernel that gives its answers one by one, the last one for ever.
type fake struct {
	t       *testing.T
	answers []answer
	refuse  error // of the next subscription
	order   []string
	updates chan netlink.AddrUpdate
	drop    func() // ends the notices, as the kernel does when they pile up
}

func (f *fake) subscribe() (*notices, error) {
	f.order = append(f.order, "subscribe")
	if err := f.refuse; err != nil {
		f.refuse = nil
		return nil, err
	}
	updates := make(chan netlink.AddrUpdate, 8)
	n := &notices{updates, make(chan struct{})}
	f.updates, f.drop = updates, sync.OnceFunc(func() { close(updates) })
	drop := f.drop
	go func() { <-n.stop; drop() }()
	return n, nil
}

func (f *fake) list() ([]netip.Addr, error) {
	f.order = append(f.order, "list")
	a := f.answers[0]
	if len(f.answers) > 1 {
		f.answers = f.answers[1:]
	}
	return slices.Clone(a.addrs), a.err
}

func (f *fake) notify() { f.updates <- netlink.AddrUpdate{} }

func addrs(list ...string) []netip.Addr {
	var all []netip.Addr
	for _, s := range list {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}

// start follows k until the test ends, and keeps each list it is told of.
func start(t *testing.T, k kernel) (*Follower, *[][]netip.Addr) {
	t.Helper()
	var told [][]netip.Addr
	ctx, cancel := context.WithCancel(t.Context())
	f, err := follow(ctx, Options{OnChange: func(a []netip.Addr) { told = append(told, a) }}, k)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); <-f.Done() })
	return f, &told
}

func expect(t *testing.T, got []netip.Addr, want ...string) {
	t.Helper()
	if !slices.Equal(got, addrs(want...)) {
		t.Errorf("addresses are %v, want %v", got, want)
	}
}

func TestFollowSubscribesBeforeItLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &fake{answers: []answer{{addrs: addrs("::1", "127.0.0.1", "10.0.0.2", "127.0.0.1")}}}
		f, told := start(t, k)
		expect(t, f.List(), "10.0.0.2", "127.0.0.1", "::1")
		if !slices.Equal(k.order, []string{"subscribe", "list"}) {
			t.Errorf("order was %v", k.order)
		}
		if len(*told) != 1 {
			t.Errorf("told %d times of the first list, want once", len(*told))
		}
	})
}

func TestFollowTellsOfTheFirstListEvenIfEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, told := start(t, &fake{answers: []answer{{}}})
		if len(*told) != 1 {
			t.Errorf("told %d times, want once", len(*told))
		}
	})
}

func TestANoticeMakesANewList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &fake{answers: []answer{{addrs: addrs("10.0.0.1")}, {addrs: addrs("10.0.0.1")}, {addrs: addrs("10.0.0.3")}}}
		f, told := start(t, k)
		k.notify()
		synctest.Wait()
		if len(*told) != 1 {
			t.Errorf("told of an equal list")
		}
		k.notify()
		k.notify()
		synctest.Wait()
		expect(t, f.List(), "10.0.0.3")
		if len(*told) != 2 {
			t.Errorf("told %d times, want twice", len(*told))
		}
	})
}

func TestAnInterruptedListIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		partial := answer{addrs("10.0.0.1"), netlink.ErrDumpInterrupted}
		k := &fake{answers: []answer{partial, partial, {addrs: addrs("10.0.0.1", "10.0.0.2")}}}
		f, told := start(t, k)
		expect(t, f.List(), "10.0.0.1", "10.0.0.2")
		if len(*told) != 1 {
			t.Errorf("told of a partial list")
		}
	})
}

func TestAPartialListOnlyAdds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &fake{answers: []answer{{addrs: addrs("10.0.0.1", "10.0.0.2")}}}
		f, _ := start(t, k)
		for range attempts {
			k.answers = append(k.answers, answer{addrs("10.0.0.3"), netlink.ErrDumpInterrupted})
		}
		k.answers = append(k.answers[1:], answer{addrs: addrs("10.0.0.3")})
		k.notify()
		synctest.Wait()
		expect(t, f.List(), "10.0.0.1", "10.0.0.2", "10.0.0.3")

		time.Sleep(pause)
		synctest.Wait()
		expect(t, f.List(), "10.0.0.3")
	})
}

func TestAFirstListThatStaysPartialIsUsedAndMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &fake{}
		for range attempts {
			k.answers = append(k.answers, answer{addrs("10.0.0.1"), netlink.ErrDumpInterrupted})
		}
		k.answers = append(k.answers, answer{addrs: addrs("10.0.0.1", "10.0.0.2")})
		f, _ := start(t, k)
		expect(t, f.List(), "10.0.0.1")
		time.Sleep(pause)
		synctest.Wait()
		expect(t, f.List(), "10.0.0.1", "10.0.0.2")
	})
}

func TestDroppedNoticesLeadToANewSubscriptionAndList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &fake{answers: []answer{{addrs: addrs("10.0.0.1")}, {addrs: addrs("10.0.0.2")}}}
		f, _ := start(t, k)
		k.refuse = errors.New("no buffer space available")
		k.drop()
		synctest.Wait()
		expect(t, f.List(), "10.0.0.1")

		time.Sleep(pause)
		synctest.Wait()
		expect(t, f.List(), "10.0.0.2")
		if want := []string{"subscribe", "list", "subscribe", "subscribe", "list"}; !slices.Equal(k.order, want) {
			t.Errorf("order was %v, want %v", k.order, want)
		}
	})
}

func TestFollowFailsWithoutAFirstList(t *testing.T) {
	k := &fake{answers: []answer{{err: errors.New("permission denied")}}}
	if _, err := follow(t.Context(), Options{}, k); err == nil {
		t.Fatal("no error")
	}
	if _, open := <-k.updates; open {
		t.Error("the subscription was left open")
	}
}

// TestFollowTheKernel adds and deletes addresses in the private namespace of
// this process.
func TestFollowTheKernel(t *testing.T) {
	link, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	lists := make(chan []netip.Addr, 16)
	ctx, cancel := context.WithCancel(t.Context())
	f, err := Follow(ctx, Options{OnChange: func(a []netip.Addr) { lists <- a }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); <-f.Done() }()
	expect(t, <-lists, "127.0.0.1", "::1")

	for _, s := range []string{"192.0.2.7/24", "2001:db8::7/64"} {
		change(t, netlink.AddrAdd, link, s)
		want := netip.MustParsePrefix(s).Addr()
		for list := range lists {
			if slices.Contains(list, want) {
				break
			}
		}
		change(t, netlink.AddrDel, link, s)
		for list := range lists {
			if !slices.Contains(list, want) {
				break
			}
		}
	}
	expect(t, f.List(), "127.0.0.1", "::1")
}

func change(t *testing.T, do func(netlink.Link, *netlink.Addr) error, link netlink.Link, s string) {
	t.Helper()
	a, err := netlink.ParseAddr(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := do(link, a); err != nil {
		t.Fatal(err)
	}
}
