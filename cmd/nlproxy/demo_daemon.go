package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// syncWait is how long a synchronisation may be waited for.
const syncWait = 10 * time.Second

// daemon is "nlproxy run" within this process.
type daemon struct {
	reports chan dataplane.Report
	stop    context.CancelFunc
	done    chan struct{}
	err     error
}

// daemonFlags are what the daemon of the demonstration is started with.
func daemonFlags(manifests string) []string {
	return []string{
		"--manifests=" + manifests,
		"--hostname-override=demo",
		"--cluster-cidr=10.244.0.0/16,fd00:244::/32",
	}
}

func daemonConfig(manifests string) (config.Config, error) {
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags := config.Bind(fs)
	if err := fs.Parse(daemonFlags(manifests)); err != nil {
		return config.Config{}, err
	}
	c, _, err := configured(flags)
	return c, err
}

// startDaemon runs the daemon until ctx is done or it is halted. Its warnings
// go to log.
func startDaemon(ctx context.Context, manifests string, log io.Writer) (*daemon, error) {
	c, err := daemonConfig(manifests)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	d := &daemon{reports: make(chan dataplane.Report, 64), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(d.done)
		p, err := newProxy(c, proxyOptions{Observe: d.observe, Logger: warnings(log)})
		if d.err = err; err == nil {
			d.err = p.run(ctx)
		}
	}()
	return d, nil
}

// warnings logs what somebody should look at, and nothing else.
func warnings(w io.Writer) *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), zap.WarnLevel))
}

// observe keeps a report for who waits for one, and never blocks.
func (d *daemon) observe(r dataplane.Report) {
	select {
	case d.reports <- r:
	default:
	}
}

// forget drops the reports that nobody has asked for.
func (d *daemon) forget() {
	for {
		select {
		case <-d.reports:
		default:
			return
		}
	}
}

// synchronised waits for the next synchronisation, in which nothing may have
// gone wrong.
func (d *daemon) synchronised(ctx context.Context) (dataplane.Report, error) {
	timeout := time.NewTimer(syncWait)
	defer timeout.Stop()
	select {
	case r := <-d.reports:
		return r, errors.Join(r.Err, setAside(r))
	case <-d.done:
		return dataplane.Report{}, errors.Join(errors.New("the daemon has ended"), d.err, ctx.Err())
	case <-timeout.C:
		return dataplane.Report{}, fmt.Errorf("%w after %v", os.ErrDeadlineExceeded, syncWait)
	case <-ctx.Done():
		return dataplane.Report{}, ctx.Err()
	}
}

// setAside is the error that some services are not programmed.
func setAside(r dataplane.Report) error {
	var errs []error
	for _, a := range r.Aside {
		errs = append(errs, fmt.Errorf("%s: the kernel refused it: %w", a.Service, a.Err))
	}
	return errors.Join(errs...)
}

// halt ends the daemon and waits for its end.
func (d *daemon) halt() error {
	d.stop()
	<-d.done
	if errors.Is(d.err, context.Canceled) {
		return nil
	}
	return d.err
}
