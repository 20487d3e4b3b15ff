package legacy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// unlocked has Remove take no lock, so that a test may write in the midst of it.
func (n *node) unlocked() { n.options.Lock = filepath.Join(n.t.TempDir(), "none") }

func TestTableThatHasChangedIsReadAgain(t *testing.T) {
	n := newNode(t)
	n.unlocked()
	n.restore(model.IPv4, small)
	once := sync.OnceFunc(func() {
		n.rule(model.IPv4, "-t", "nat", "-I", "FOREIGN", "1", "-s", "192.0.2.1", "-j", "RETURN", "-c", "11", "110")
	})
	writes := n.spy(spy{replace: func() error { once(); return nil }})
	n.mustRemove()
	// With each command iptables-legacy 1.8.9 has the policies count anew.
	want := strings.NewReplacer(
		"[7:70]", "[11:110] -A FOREIGN -s 192.0.2.1/32 -j RETURN\n[7:70]",
		"[1:10]", "[0:0]", "[2:20]", "[0:0]", "[3:30]", "[0:0]",
	).Replace(without(small))
	if diff := cmp.Diff(want, n.save(model.IPv4)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if *writes != 3 {
		t.Errorf("%d writes, want one in vain, one that succeeds, and the counters", *writes)
	}
}

func TestTableThatIsNeverLeftAloneIsGivenUp(t *testing.T) {
	n := newNode(t)
	n.unlocked()
	n.restore(model.IPv4, small)
	number := 0
	n.spy(spy{replace: func() error {
		number++
		n.rule(model.IPv4, "-t", "nat", "-A", "FOREIGN", "-s", fmt.Sprintf("192.0.2.%d", number), "-j", "RETURN")
		return nil
	}})
	removed, err := n.remove()
	if !errors.Is(err, errChanged) || removed != nil {
		t.Errorf("removed %v, %v", removed, err)
	}
	if err != nil && !strings.Contains(err.Error(), "ip nat") {
		t.Errorf("no table is named: %v", err)
	}
	left := n.save(model.IPv4)
	if added := strings.Count(left, "-A FOREIGN -s 192.0.2."); added != attempts || !strings.Contains(left, "-A KUBE-SVC-A") {
		t.Errorf("%d of %d rules of others in\n%s", added, attempts, left)
	}
}

// Packets are counted before the table is replaced, after that, and after the
// old counters are added.
func TestNoPacketIsCountedTwiceOrNotAtAll(t *testing.T) {
	for f, to := range map[model.Family]string{model.IPv4: "127.0.0.1:9", model.IPv6: "[::1]:9"} {
		n := newNode(t)
		n.restore(f, `*filter
:INPUT ACCEPT [5:500]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [7:700]
:KUBE-FORWARD - [0:0]
[1:10] -A INPUT -j KUBE-FORWARD
[9:900] -A INPUT -p udp -m udp --dport 9 -j DROP
[2:20] -A OUTPUT -j KUBE-FORWARD
[3:30] -A OUTPUT -p udp -m udp --dport 9
COMMIT
`)
		send := func() error { return n.send(to, 10) }
		n.spy(spy{replace: send, count: send})
		n.mustRemove()
		if err := send(); err != nil {
			t.Fatal(err)
		}
		size := map[model.Family]int{model.IPv4: 28 + 1, model.IPv6: 48 + 1}[f]
		want := fmt.Sprintf(`*filter
:INPUT ACCEPT [5:500]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [37:%d]
[39:%d] -A INPUT -p udp -m udp --dport 9 -j DROP
[33:%d] -A OUTPUT -p udp -m udp --dport 9
COMMIT
`, 700+30*size, 900+30*size, 30+30*size)
		if diff := cmp.Diff(want, n.save(f)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f, diff)
		}
	}
}

// send sends packets of one byte, from the namespace to itself.
func (n *node) send(to string, count int) error {
	return n.Do(func() error {
		conn, err := net.Dial("udp", to)
		if err != nil {
			return err
		}
		defer conn.Close()
		for range count {
			if _, err := conn.Write([]byte{1}); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestLockOfOthersIsRespected(t *testing.T) {
	n := newNode(t)
	n.restore(model.IPv4, small)
	before := n.save(model.IPv4)
	unlock := n.flock()
	n.options.Wait = time.Nanosecond
	removed, err := n.remove()
	if err == nil || removed != nil || !strings.Contains(err.Error(), n.options.Lock) {
		t.Errorf("while others hold the lock: removed %v, %v", removed, err)
	}
	if diff := cmp.Diff(before, n.save(model.IPv4)); diff != "" {
		t.Errorf("changed (-before +now):\n%s", diff)
	}
	unlock()
	if removed := n.mustRemove(); len(removed) != 1 {
		t.Errorf("once they do not: removed %v", removed)
	}
	n.flock()() // it is free again
}

func TestLockThatComesFreeIsTaken(t *testing.T) {
	n := newNode(t)
	n.restore(model.IPv4, small)
	unlock := n.flock()
	n.options.Wait = time.Minute
	found := make(chan struct{})
	foundOnce := sync.OnceFunc(func() { close(found) })
	n.options.dial = func(f model.Family) (socket, error) {
		foundOnce()
		return dial(f)
	}
	var waiting sync.WaitGroup
	waiting.Go(func() { <-found; unlock() })
	if removed := n.mustRemove(); len(removed) != 1 {
		t.Errorf("removed %v", removed)
	}
	waiting.Wait()
}

func TestLockIsNotWaitedForOnceTheCallerEnds(t *testing.T) {
	n := newNode(t)
	n.restore(model.IPv4, small)
	before := n.save(model.IPv4)
	defer n.flock()()
	n.options.Wait = time.Hour
	ended := errors.New("the caller ends")
	ctx, end := context.WithCancelCause(t.Context())
	n.options.dial = func(f model.Family) (socket, error) {
		end(ended)
		return dial(f)
	}
	err := n.Do(func() error {
		removed, err := Remove(ctx, n.options)
		if removed != nil || !errors.Is(err, ended) || !strings.Contains(err.Error(), n.options.Lock) {
			t.Errorf("removed %v, %v", removed, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, n.save(model.IPv4)); diff != "" {
		t.Errorf("changed (-before +now):\n%s", diff)
	}
}

func TestLockThatCannotBeOpenedIsNotNeeded(t *testing.T) {
	n := newNode(t)
	n.restore(model.IPv4, small)
	n.unlocked()
	if removed := n.mustRemove(); len(removed) != 1 {
		t.Errorf("removed %v", removed)
	}
	if _, err := os.Stat(n.options.Lock); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file for the lock was made: %v", err)
	}
}

// others is how many rules each of two programs of others add.
const others = 60

// One program adds rules, another has kube-proxy's come back, and all the time
// they are removed.
func TestOthersWriteAtTheSameTime(t *testing.T) {
	n := newNode(t)
	n.restore(model.IPv4, small)
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := range others {
			n.rule(model.IPv4, "-t", "nat", "-A", "FOREIGN", "-s", fmt.Sprintf("192.0.2.%d", i), "-j", "RETURN", "-c", fmt.Sprint(i), "1")
		}
	})
	writers.Go(func() {
		for i := range others {
			if i%10 == 0 {
				n.add(small)
			}
			n.rule(model.IPv4, "-t", "nat", "-I", "PREROUTING", "-s", fmt.Sprintf("198.51.100.%d", i), "-j", "FOREIGN", "-c", "7", fmt.Sprint(i))
		}
	})
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		n.mustRemove()
	}
	left := n.save(model.IPv4)
	for i := range others {
		for _, rule := range []string{
			fmt.Sprintf("[%d:1] -A FOREIGN -s 192.0.2.%d/32 -j RETURN\n", i, i),
			fmt.Sprintf("[7:%d] -A PREROUTING -s 198.51.100.%d/32 -j FOREIGN\n", i, i),
		} {
			if strings.Count(left, rule) != 1 {
				t.Errorf("not once: %s", rule)
			}
		}
	}
	if strings.Contains(left, "KUBE-") || t.Failed() {
		t.Errorf("left:\n%s", left)
	}
}
