// Package sysctl reads and writes kernel settings below /proc/sys.
//
// Guarantees:
//   - A setting that already has the wanted value is not written.
//   - Errors tell apart what an operator can act on: a setting that does not
//     exist (fs.ErrNotExist), one that may not be written (fs.ErrPermission),
//     a read-only file system (ErrReadOnly), and a value that the kernel does
//     not accept (syscall.EINVAL).
//   - No other program and no file outside the root is used.
package sysctl
