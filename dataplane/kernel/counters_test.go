package kernel_test

import (
	"errors"
	"io/fs"
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestCountersAreMadeOnceAndRead(t *testing.T) {
	n := newNode(t)
	names := []string{"first", "second"}
	have, err := n.EnsureCounters(names)
	if err != nil {
		t.Fatal(err)
	}
	if have == nil {
		labtest.Missing(t, "kernel module nfnetlink_acct")
	}
	n.run("iptables-nft", "-A", "OUTPUT", "-p", "udp", "-m", "nfacct", "--nfacct-name", "second")
	conn, err := n.Dial(t.Context(), net.Dialer{}, "udp", "127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(make([]byte, 72)); err != nil {
		t.Fatal(err)
	}
	if have, err = n.EnsureCounters(append(names, "third")); err != nil || !slices.Equal(have, []string{"first", "second", "third"}) {
		t.Errorf("have %v, %v", have, err)
	}
	packets, bytes, err := n.Counter("second")
	if err != nil || packets != 1 || bytes != 100 {
		t.Errorf("counted %d packets, %d bytes, %v; want 1 and 100", packets, bytes, err)
	}
	if _, _, err := n.Counter("nonesuch"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent counter: %v, want fs.ErrNotExist", err)
	}
}

func TestBadCounterCostsOnlyItself(t *testing.T) {
	n := newNode(t)
	have, err := n.EnsureCounters([]string{"good", strings.Repeat("x", 32), "", "better"})
	if have == nil && err == nil {
		labtest.Missing(t, "kernel module nfnetlink_acct")
	}
	if !slices.Equal(have, []string{"good", "better"}) || !errors.Is(err, unix.ENAMETOOLONG) || !errors.Is(err, unix.EINVAL) {
		t.Errorf("have %v, %v", have, err)
	}
}
