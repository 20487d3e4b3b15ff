package dataplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"go.uber.org/zap"
)

// Writer commits transactions; kernel.Conn is one, and says what the methods
// do and which errors they return.
type Writer interface {
	Fit(ops []rules.Op) int
	Apply(ops []rules.Op) (handles []uint64, err error)
}

// Reader lists what there is; kernel.Conn is one.
type Reader interface {
	List(tables []rules.Table) ([]rules.ListedChain, error)
	ListChain(rules.ChainID) (rules.ListedChain, error)
	Generation() (uint32, error)
}

// Options configures a Dataplane.
type Options struct {
	// Reader and Writer are the kernel. Both are required.
	Reader Reader
	Writer Writer

	// Plan holds the settings that decisions depend on.
	Plan plan.Options

	// RouteLocalnet, if set, is called when node ports are to be served on
	// 127.0.0.0/8, after the rule that guards it is in place. It has to set
	// net.ipv4.conf.all.route_localnet.
	RouteLocalnet func() error

	// RetryAside is how long a service that the kernel refused is left alone;
	// the time doubles at each failure, up to 16 times that. 0 means a minute.
	RetryAside time.Duration

	// Recheck is for how long changes that others make to the ruleset are only
	// looked at for what all traffic passes through. The first Set after that
	// time compares everything, and tries a family again that the kernel
	// refused. 0 means 10 minutes.
	Recheck time.Duration

	// TransactionBytes is the size from which changes go in several
	// transactions. 0 means 4 MiB.
	TransactionBytes int

	// Logger is told of each synchronisation and of what was set aside; nil
	// for none.
	Logger *zap.Logger

	// Committed, if set, is called after rules have been written, never before,
	// with the decisions that they are new for: those of each planned service
	// and of the frame, for both families. Services that were set aside are not
	// in them. What changed but could not be written comes with a later call.
	// It has to return at once, and must not change what it is given.
	Committed func(plans []plan.Plan, node model.Node)

	// Observer, if set, is called with each Report.
	Observer func(Report)
}

const (
	defaultRetryAside       = time.Minute
	maxRetryFactor          = 16
	defaultRecheck          = 10 * time.Minute
	defaultTransactionBytes = 4 << 20
)

// Validate names the first field that cannot be used.
func (o Options) Validate() error {
	switch {
	case o.Reader == nil:
		return errors.New("dataplane: Reader is missing")
	case o.Writer == nil:
		return errors.New("dataplane: Writer is missing")
	case o.RetryAside < 0:
		return fmt.Errorf("dataplane: RetryAside %v is negative", o.RetryAside)
	case o.Recheck < 0:
		return fmt.Errorf("dataplane: Recheck %v is negative", o.Recheck)
	case o.TransactionBytes < 0:
		return fmt.Errorf("dataplane: TransactionBytes %d is negative", o.TransactionBytes)
	}
	if err := o.Plan.Validate(); err != nil {
		return fmt.Errorf("dataplane: Plan.%w", err)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.RetryAside == 0 {
		o.RetryAside = defaultRetryAside
	}
	if o.Recheck == 0 {
		o.Recheck = defaultRecheck
	}
	if o.TransactionBytes == 0 {
		o.TransactionBytes = defaultTransactionBytes
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

// Report says what one Set did.
type Report struct {
	// Services is how many exist, Planned for how many decisions were made.
	Services, Planned int
	// Full says that the kernel was listed and everything compared.
	Full bool
	// Transactions and Operations that were committed, and their size in bytes.
	Transactions, Operations, Bytes int
	// Duration of the whole, and of it the time spent waiting for the kernel.
	Duration, Kernel time.Duration
	// Failures is how many attempts to list or write rules failed, what the
	// kernel refused of a single service included, and PartialFailures how many
	// of them came before everything was compared. An end of the context is none.
	Failures, PartialFailures int
	// Overwritten is how often rules of ours were found changed or removed by
	// somebody else.
	Overwritten int
	// Families are those that the kernel holds rules for, unless Err is set.
	Families []model.Family
	// Rules is how many rules of ours there are in each table, and Written how
	// many were written now. Jumps from the base chains are not counted.
	Rules, Written map[rules.Table]int
	// NoLocal counts, unless Err is set, the service ports whose endpoints are
	// all on other nodes while a traffic policy wants them here.
	NoLocal map[model.Family]NoLocal
	// Triggers are when what is now true was asked for, the oldest first, also
	// what earlier calls could not make true. It is empty if Err is set.
	Triggers []model.Trigger
	// Aside are the services that the kernel refuses.
	Aside []Aside
	// Conflicts are frontends that two services claim, as far as they were
	// planned now.
	Conflicts []plan.Conflict
	// Err is what Set returned.
	Err error
}

// failed counts an attempt that ended in err.
func (r *Report) failed(err error) {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	r.Failures++
	if !r.Full {
		r.PartialFailures++
	}
}

// NoLocal counts service ports by the traffic policy that leaves them without
// an endpoint.
type NoLocal struct{ Internal, External int }

// Aside is a service that the kernel refuses.
type Aside struct {
	Service model.Name
	Err     error
	// Since when, and not before when it is tried again.
	Since, Retry time.Time
}
