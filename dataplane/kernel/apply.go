package kernel

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/rules"
)

const (
	// echoes is the largest number of rules in a transaction whose handles are
	// asked for. Each echo takes up to a page of the receive buffer. Without
	// SO_RCVBUFFORCE, which needs CAP_NET_ADMIN in the initial user namespace,
	// some may be lost, and with them these handles.
	echoes = 256
	// What a reply takes of the receive buffer at most: a rule is echoed in a
	// buffer of NLMSG_GOODSIZE (nf_tables_rule_notify), an error in a small
	// one.
	echoSize, errorSize = 8 << 10, 1 << 10
	// enoughReplies limits the receive buffer: 16,000 errors tell enough.
	enoughReplies = 16 << 20
	// keptBatch is the largest buffer that is kept for the next transaction.
	keptBatch = 1 << 20
)

// Apply commits ops, in their order, as one transaction of nf_tables, or
// changes nothing. If all that the kernel refuses is to delete chains in use,
// as kernels before 6.2 do when the last reference goes in the same
// transaction, the deletions follow in a transaction of their own; see
// Refused.Rest.
//
// handles[i] is the handle of the rule that ops[i] made, where ops[i] makes
// one and the kernel told it, as it does for up to 256 rules; 0 elsewhere.
//
// Errors are *Refused, *Uncertain, or any other, after which nothing has
// changed: EMSGSIZE among them for more operations than Fit says.
func (c *Conn) Apply(ops []rules.Op) (handles []uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(ops) == 0 {
		return nil, nil
	}
	if refused := check(ops); refused != nil {
		return nil, refused
	}
	handles, err = c.transact(ops)
	var refused *Refused
	if errors.As(err, &refused) && refused.onlyBusyChains() && deletionsCanWait(ops) {
		return c.applySplit(ops)
	}
	return handles, err
}

// Fit returns how many of ops, counted from the first, fit into one
// transaction. With CAP_NET_ADMIN in the initial user namespace all do; in any
// other, SO_SNDBUFFORCE is not allowed (sk_setsockopt in net/core/sock.c,
// 6.18) and a transaction has at most twice net.core.wmem_max bytes, which is
// some 700 rules where nobody has raised it. It is 0 only if ops are none or
// the first is too large.
func (c *Conn) Fit(ops []rules.Op) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.growSendBuffer(batchSize(ops)) == nil {
		return len(ops)
	}
	room := c.sendBuffer - sendOverhead - batchSize(nil)
	for i := range ops {
		if room -= opSize(&ops[i]); room < 0 {
			return i
		}
	}
	return len(ops)
}

// transact sends ops as one transaction and says what came of it.
func (c *Conn) transact(ops []rules.Op) ([]uint64, error) {
	t := transaction{ops: ops, first: c.sequence + 1, handles: make([]uint64, len(ops))}
	c.sequence += uint32(len(ops)) + 2
	replies, made := len(ops)*errorSize, rulesMade(ops)
	if made <= echoes {
		replies += made * echoSize
	}
	c.growReceiveBuffer(min(replies, enoughReplies))
	if err := c.sendBatch(ops, t.first, made <= echoes); err != nil {
		return nil, fmt.Errorf("send transaction: %w", err)
	}
	t.lost = c.drain(t.read)
	return t.outcome()
}

func (c *Conn) sendBatch(ops []rules.Op, first uint32, echo bool) error {
	batch := encodeBatch(c.outgoing[:0], ops, first, echo)
	if cap(batch) <= keptBatch {
		c.outgoing = batch
	}
	if c.tap != nil {
		c.tap(batch)
	}
	return c.send(batch)
}

func rulesMade(ops []rules.Op) (n int) {
	for i := range ops {
		if ops[i].Verb.MakesRule() {
			n++
		}
	}
	return n
}

// transaction is what is known of one that was sent.
type transaction struct {
	ops     []rules.Op
	first   uint32
	handles []uint64
	// committed is set by proof: the ack, or an echo, which the kernel sends
	// only while it commits.
	committed bool
	// failed is the kernel's answer to the transaction as a whole.
	failed  verdict
	refused []Refusal
	// lost is why replies may be missing.
	lost error
}

// read takes one reply.
func (t *transaction) read(m message) {
	i := m.sequence - t.first - 1
	switch {
	case m.kind == unix.NLMSG_ERROR && m.sequence == t.first:
		t.failed = m.verdict()
	case i >= uint32(len(t.ops)):
	case m.kind == unix.NLMSG_ERROR:
		t.readVerdict(int(i), m.verdict())
	case m.kind == nfTables(unix.NFT_MSG_NEWRULE):
		t.committed = true
		t.handles[i] = number(attribute(m.body(), unix.NFTA_RULE_HANDLE))
	}
}

func (t *transaction) readVerdict(i int, v verdict) {
	if v.errno == 0 {
		t.committed = true
		return
	}
	t.refused = append(t.refused, refusal(i, &t.ops[i], v))
}

// outcome judges. An error of one message fails the transaction, whatever else
// came; an ack beside the failure of the commit means nothing. The kernel
// queues errors before acks and echoes before the ack, and the first reply
// always finds room, so that ENOBUFS after an echo is a commit whose handles
// are not all known.
func (t *transaction) outcome() ([]uint64, error) {
	switch {
	case len(t.refused) > 0:
		slices.SortFunc(t.refused, func(a, b Refusal) int { return a.op - b.op })
		return nil, &Refused{Objects: t.refused, Incomplete: t.lost != nil}
	case t.failed.errno != 0:
		return nil, batchError(t.failed)
	case t.committed:
		return t.handles, nil
	case t.lost != nil:
		return nil, &Uncertain{Err: t.lost}
	}
	return nil, &Uncertain{Err: errors.New("the kernel did not answer")}
}

// batchError explains why the kernel did not take a transaction as a whole.
func batchError(v verdict) error {
	reason := v.detail
	switch v.errno {
	case unix.EPERM:
		reason = "CAP_NET_ADMIN is missing; run as root, or in a container with the capability NET_ADMIN"
	case unix.EOPNOTSUPP, unix.EINVAL:
		reason = "the kernel lacks nf_tables"
	}
	if reason == "" {
		return fmt.Errorf("transaction refused: %w", v.errno)
	}
	return fmt.Errorf("transaction refused: %s: %w", reason, v.errno)
}
