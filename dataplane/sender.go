package dataplane

import (
	"context"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// sender commits edits in transactions of bounded size. While the kernel works
// one off, the next is put together.
type sender struct {
	ctx    context.Context
	writer Writer
	state  *rules.State
	report *Report
	limit  int

	pending []rules.Edit
	size    int
	// flying is the transaction that the kernel has; nil if none.
	flying    chan outcome
	committed int
	err       error
}

// outcome is what became of a transaction.
type outcome struct {
	edits        []rules.Edit
	ops, bytes   int
	transactions int
	handles      []uint64
	err          error
}

func newSender(ctx context.Context, o Options, state *rules.State, report *Report) *sender {
	return &sender{ctx: ctx, writer: o.Writer, state: state, report: report, limit: o.TransactionBytes}
}

// opBytes is about what a message takes besides a rule's expressions.
const opBytes = 100

func (s *sender) add(edits []rules.Edit) {
	for _, e := range edits {
		size := 0
		for _, op := range e.Ops {
			size += opBytes + len(op.Exprs)
		}
		if s.size > 0 && s.size+size > s.limit {
			s.launch()
		}
		s.pending = append(s.pending, e)
		s.size += size
	}
}

// launch hands what is pending to the kernel once it is done with what it has.
func (s *sender) launch() {
	s.land()
	edits, size := s.pending, s.size
	// The next one is likely to be about as long.
	s.pending, s.size = make([]rules.Edit, 0, len(edits)), 0
	if s.err == nil {
		s.err = s.ctx.Err()
	}
	if s.err != nil || len(edits) == 0 {
		return
	}
	s.flying = make(chan outcome, 1)
	go func(to chan<- outcome) { to <- s.apply(edits, size) }(s.flying)
}

// apply commits edits in one transaction. A socket that may not be made large
// enough for it, as that of a user without privilege, takes several.
func (s *sender) apply(edits []rules.Edit, size int) outcome {
	n := 0
	for _, e := range edits {
		n += len(e.Ops)
	}
	ops := make([]rules.Op, 0, n)
	for _, e := range edits {
		ops = append(ops, e.Ops...)
	}
	out := outcome{edits: edits, ops: len(ops), bytes: size}
	for len(ops) > 0 && out.err == nil {
		// What does not fit at all is for the kernel package to refuse.
		n := max(s.writer.Fit(ops), 1)
		var handles []uint64
		if handles, out.err = s.writer.Apply(ops[:n]); out.err == nil {
			out.transactions++
			out.handles = append(out.handles, handles...)
			ops = ops[n:]
		}
	}
	return out
}

// land waits for the kernel and notes what it has done.
func (s *sender) land() {
	if s.flying == nil {
		return
	}
	start := time.Now()
	out := <-s.flying
	s.flying = nil
	s.report.Kernel += time.Since(start)
	s.committed += out.transactions
	s.report.Transactions += out.transactions
	if out.err != nil {
		s.err = out.err
		return
	}
	if out.transactions > 0 {
		s.report.Operations += out.ops
		s.report.Bytes += out.bytes
	}
	handles := out.handles
	for _, e := range out.edits {
		n := min(len(e.Ops), len(handles))
		s.state.Commit(e, handles[:n])
		handles = handles[n:]
	}
}

// flush waits until everything is committed, and returns the first error.
func (s *sender) flush() error {
	s.launch()
	s.land()
	return s.err
}
