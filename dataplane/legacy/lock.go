package legacy

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockFile is what iptables-legacy locks with flock while it reads and writes
// tables (XT_LOCK_NAME, iptables/xshared.c, iptables 1.8.9).
const lockFile = "/run/xtables.lock"

// pause is the time between two attempts to lock.
const pause = 10 * time.Millisecond

// lock locks the file until the function that it returns is called. Where there
// is no such file or it may not be opened, nothing is locked.
func lock(path string, wait time.Duration) (unlock func() error, err error) {
	f, err := os.Open(path)
	if err != nil {
		return func() error { return nil }, nil
	}
	for deadline := time.Now().Add(wait); ; time.Sleep(pause) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return f.Close, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		case time.Now().After(deadline):
			return nil, errors.Join(fmt.Errorf("lock %s: another program has held it for %s", path, wait), f.Close())
		}
	}
}
