package conntrack

import (
	"fmt"
	"io/fs"
	"runtime"
	"strconv"
	"strings"
)

// Cores returns how many CPUs of the node are online, at least 1. sys is /sys.
//
// The limit of flows is the node's, and so must be what it is computed from:
// runtime.NumCPU knows only the CPUs that this process may use, fewer in a
// container with a cpuset, and runtime.GOMAXPROCS heeds its quota as well.
// runtime.NumCPU stands in where /sys cannot be read.
func Cores(sys fs.FS) int {
	list, err := fs.ReadFile(sys, "devices/system/cpu/online")
	if err != nil {
		return runtime.NumCPU()
	}
	n, err := countCPUs(strings.TrimSpace(string(list)))
	if err != nil {
		return runtime.NumCPU()
	}
	return n
}

// countCPUs counts a list of CPUs as the kernel prints it, such as 0-3,8
// (bitmap_print_to_pagebuf, lib/bitmap-str.c, Linux 6.18).
func countCPUs(list string) (n int, err error) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("list of CPUs %q: %w", list, err)
		}
		last, err := strconv.ParseUint(to, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("list of CPUs %q: %w", list, err)
		}
		if last < first {
			return 0, fmt.Errorf("list of CPUs %q: %s is backwards", list, part)
		}
		n += int(last-first) + 1
	}
	return n, nil
}
