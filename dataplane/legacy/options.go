package legacy

import (
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// Options configures Find and Remove. The zero value is the network namespace
// of the calling thread.
type Options struct {
	// Proc is /proc, of which thread-self/net/ip_tables_names and
	// ip6_tables_names are read. Nil means os.DirFS("/proc").
	Proc fs.FS
	// Lock is the file that iptables-legacy locks. Empty means
	// /run/xtables.lock. Where it cannot be opened, nothing is locked.
	Lock string
	// Wait is how long another program may hold the lock before Remove gives
	// up; 0 means 5 seconds.
	Wait time.Duration

	dial func(model.Family) (socket, error)
}

const defaultWait = 5 * time.Second

// Validate names the first field that cannot be used.
func (o Options) Validate() error {
	if o.Wait < 0 {
		return fmt.Errorf("legacy: Wait %v is negative", o.Wait)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Proc == nil {
		o.Proc = os.DirFS("/proc")
	}
	if o.Lock == "" {
		o.Lock = lockFile
	}
	if o.Wait == 0 {
		o.Wait = defaultWait
	}
	if o.dial == nil {
		o.dial = dial
	}
	return o
}
