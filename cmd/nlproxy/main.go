// Command nlproxy makes a node serve the Services of a Kubernetes cluster: it
// watches them and programs nf_tables over netlink, and runs no other program.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	err := root().ExecuteContext(ctx)
	stop()
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	var code exitCode
	if errors.As(err, &code) {
		os.Exit(int(code))
	}
	fmt.Fprintln(os.Stderr, "nlproxy:", err)
	os.Exit(1)
}
