// Package logs makes the process's logger of the logging section of a
// configuration.
//
// Guarantees:
//   - An entry is one write of one line, and entries are written in the order
//     in which they are logged, but for those that a buffer holds.
//   - Warnings and errors are never buffered, and never filtered.
//   - The verbosity may be changed at any time, from any goroutine.
//
// The verbosity is klog's: at 0 information, warnings and errors are logged; from
// 1 on, what nlproxy logs as debug, too; and at N, what libraries give to klog
// with a level of up to N. A file that vmodule matches has the higher one of the
// general verbosity and its own.
//
// In the text format an entry is time, level, message and the fields as JSON,
// with tabs between. In both, times are of RFC 3339 and durations as Go writes
// them.
package logs
