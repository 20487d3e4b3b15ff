package kernel_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// load is n rules with comments, sixteen to a chain.
func load(n int) []rules.Op {
	top := chainID(model.IPv4, "nat", "TOP")
	ops := made(top)
	var chain rules.ChainID
	for i := range n {
		if i%16 == 0 {
			chain = chainID(model.IPv4, "nat", chainName(i/16))
			ops = append(ops, on(rules.AddChain, chain))
		}
		ops = append(ops, put(rules.Append, chain, serviceRule(i)))
	}
	return ops
}

func serviceRule(i int) []byte {
	return encoded(
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{10, byte(i >> 16), byte(i >> 8), byte(i)}},
		comment(fmt.Sprintf("namespace/service-%d:http cluster IP", i)),
		&expr.Counter{},
		&expr.Verdict{Kind: expr.VerdictReturn},
	)
}

func BenchmarkApply10000(b *testing.B) { benchmarkApply(b, 10_000) }

func BenchmarkApply160000(b *testing.B) {
	if testing.Short() {
		b.Skip("160,000 rules take minutes of a small machine")
	}
	benchmarkApply(b, 160_000)
}

// benchmarkApply compares Apply with a bare sendmsg of the same bytes.
func benchmarkApply(b *testing.B, n int) {
	ops := load(n)
	var batches [][]byte
	applyParts(newNodeWith(b, kernel.Options{Tap: func(sent []byte) {
		batches = append(batches, bytes.Clone(sent))
	}}), ops)
	var apply, replay time.Duration
	for b.Loop() {
		apply += applyParts(newNode(b), ops)
		replay += resend(b, batches)
	}
	b.ReportMetric(float64(apply.Milliseconds())/float64(b.N), "apply-ms")
	b.ReportMetric(float64(replay.Milliseconds())/float64(b.N), "sendmsg-ms")
	b.ReportMetric(float64(apply)/float64(replay), "ratio")
	b.ReportMetric(float64(len(batches)), "transactions")
	b.ReportMetric(float64(len(bytes.Join(batches, nil)))/1e6, "MB")
}

// applyParts applies ops in as few transactions as this process may send them
// in, and says how long that took.
func applyParts(n node, ops []rules.Op) time.Duration {
	start := time.Now()
	for len(ops) > 0 {
		fit := n.Fit(ops)
		n.apply(ops[:fit]...)
		ops = ops[fit:]
	}
	return time.Since(start)
}

// resend sends recorded transactions in a fresh namespace, checks that they
// were committed, and says how long sendmsg took.
func resend(b *testing.B, batches [][]byte) (took time.Duration) {
	node := newNode(b)
	err := node.Do(func() error {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for _, batch := range batches {
			if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, len(batch)) != nil {
				err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, len(batch))
			}
			start := time.Now()
			err = errors.Join(err, unix.Sendto(fd, batch, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
			took += time.Since(start)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	if id, err := node.Generation(); err != nil || int(id) <= len(batches) {
		b.Fatalf("generation %d, %v, after %d transactions", id, err, len(batches))
	}
	return took
}
