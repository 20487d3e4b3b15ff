package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// largest is the most bytes that a configuration may have; a ConfigMap has
	// 1 MiB at most.
	largest = 4 << 20
	// overdue is how long a configuration that comes through a pipe may take.
	overdue = 5 * time.Second
)

// readFile reads a configuration, and does not wait for ever, whatever is there
// in place of a file: a pipe that nobody writes to is empty.
func readFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.SetReadDeadline(time.Now().Add(overdue)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, largest+1))
	if err == nil && len(data) > largest {
		err = fmt.Errorf("%s: more than %d bytes", name, largest)
	}
	return data, err
}
