package legacy

import (
	"context"
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

// lock locks the file until the function that it returns is called. It waits for
// others until ctx is done, and for no longer than wait. Where there is no such
// file or it may not be opened, nothing is locked.
func lock(ctx context.Context, path string, wait time.Duration) (unlock func() error, err error) {
	f, err := os.Open(path)
	if err != nil {
		return func() error { return nil }, nil
	}
	held := fmt.Errorf("another program has held it for %s", wait)
	ctx, cancel := context.WithTimeoutCause(ctx, wait, held)
	defer cancel()
	if err := flock(ctx, f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f.Close, nil
}

// flock returns why ctx is done if it is before f can be locked.
func flock(ctx context.Context, f *os.File) error {
	again := time.NewTicker(pause)
	defer again.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again.C:
		}
	}
}
