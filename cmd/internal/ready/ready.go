package ready

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Notifier sends messages to the service manager that started this process. A
// nil one sends none.
type Notifier struct {
	send func(state string) error
	// deadline is how long the service manager waits for a sign of life; 0 if
	// it does not.
	deadline time.Duration
}

// New returns a Notifier for the socket that the environment names in
// NOTIFY_SOCKET, a path or, after an @, an abstract name; nil if it names none.
// It is an error if WATCHDOG_USEC is not a number of microseconds above 0; the
// Notifier then gives no signs of life, and does all else.
func New() (*Notifier, error) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil, nil
	}
	deadline, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		err = fmt.Errorf("environment of the service manager, which is given no signs of life: %w", err)
	}
	return &Notifier{send, deadline}, err
}

func send(state string) error {
	if _, err := daemon.SdNotify(false, state); err != nil {
		first, _, _ := strings.Cut(state, "\n")
		return fmt.Errorf("tell the service manager %s: %w", first, err)
	}
	return nil
}

// Ready says that this process serves, or again serves after Reloading. The
// status is a line for those who ask how it is; empty leaves the one before.
func (n *Notifier) Ready(status string) error {
	return n.say(daemon.SdNotifyReady, status)
}

// Reloading says that another configuration is taken up, and Ready that this is
// done.
func (n *Notifier) Reloading() error {
	// The time is what a unit of Type=notify-reload wants (systemd 253).
	return n.say(daemon.SdNotifyReloading+"\n"+strings.TrimSpace(daemon.SdNotifyMonotonicUsec()), "")
}

// Stopping says that this process is about to end.
func (n *Notifier) Stopping() error { return n.say(daemon.SdNotifyStopping, "") }

// say sends a message with a status, if that is not empty. A line in it is a
// message of its own, so it has only one.
func (n *Notifier) say(state, status string) error {
	if n == nil {
		return nil
	}
	if status != "" {
		state += "\nSTATUS=" + strings.ReplaceAll(status, "\n", " ")
	}
	return n.send(state)
}

// Watchdog gives a sign of life twice in the time that the service manager
// allows between two, as long as healthy returns true, until ctx is done. Where
// none is waited for it returns at once. The error is that of the last sign.
func (n *Notifier) Watchdog(ctx context.Context, healthy func() bool) (err error) {
	if n == nil || n.deadline == 0 {
		return nil
	}
	ticks := time.NewTicker(max(n.deadline/2, 1))
	defer ticks.Stop()
	for ctx.Err() == nil {
		if healthy() {
			err = n.send(daemon.SdNotifyWatchdog)
		}
		select {
		case <-ctx.Done():
		case <-ticks.C:
		}
	}
	return err
}
