package kernel

import (
	"sync"

	"github.com/mdlayher/netlink"

	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// Options configures a Conn. The zero value is the current network namespace.
type Options struct {
	// NetNS is a file descriptor of the network namespace to work in; 0 for
	// that of the calling thread. It is not used after Dial.
	NetNS int
	// Tap, if set, is given each transaction as it is sent. It must not keep
	// the slice.
	Tap func(batch []byte)
}

// Conn is a connection to nf_tables and nfnetlink_acct of one network
// namespace.
type Conn struct {
	mu  sync.Mutex // held for a whole call
	nl  *netlink.Conn
	tap func([]byte)
}

// Dial opens a connection. It needs CAP_NET_ADMIN only for what is done later.
func Dial(o Options) (*Conn, error) { panic("skeleton") }

// Close closes the connection.
func (c *Conn) Close() error { panic("skeleton") }

// Apply commits ops, in their order, as one transaction of nf_tables, or
// changes nothing; see Refused.Rest for the one exception. handles[i] is the
// handle of the rule that ops[i] made, where ops[i] makes one and the kernel
// told it; 0 elsewhere.
//
// Errors are *Refused, *Uncertain, or any other, after which nothing has
// changed.
func (c *Conn) Apply(ops []rules.Op) (handles []uint64, err error) { panic("skeleton") }

// List returns the chains of tables with their rules in order, as they were at
// one moment. Tables that do not exist are absent. The error wraps
// ErrInterrupted if the ruleset changed during each of several attempts.
func (c *Conn) List(tables []rules.Table) ([]rules.ListedChain, error) { panic("skeleton") }

// ListChain returns one chain with its rules in order, as they were at one
// moment. If the chain or its table does not exist, errors.Is(err,
// fs.ErrNotExist). ErrInterrupted as in List.
func (c *Conn) ListChain(id rules.ChainID) (rules.ListedChain, error) { panic("skeleton") }

// Generation returns the number that the kernel raises with every transaction
// that anyone commits in this network namespace (NFT_MSG_GETGEN).
func (c *Conn) Generation() (uint32, error) { panic("skeleton") }

// EnsureCounters makes those nfnetlink_acct objects that are missing and
// returns the ones of names that exist then, in their order. A kernel without
// nfnetlink_acct has none, which is no error. Counts of existing objects stay.
func (c *Conn) EnsureCounters(names []string) (have []string, err error) { panic("skeleton") }

// Counter returns what an nfnetlink_acct object has counted. If there is none
// of that name, errors.Is(err, fs.ErrNotExist).
func (c *Conn) Counter(name string) (packets, bytes uint64, err error) { panic("skeleton") }
