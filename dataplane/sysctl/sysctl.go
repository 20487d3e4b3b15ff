package sysctl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrReadOnly says that the settings cannot be written at all, as in a
// container where /proc/sys is mounted read-only.
var ErrReadOnly = errors.New("mounted read-only")

// Tree is a directory of settings. Its zero value is /proc/sys.
type Tree struct {
	// Root is the directory; empty for /proc/sys.
	Root string
}

// Read returns the value of a setting such as "net/ipv4/ip_forward", without
// the white space around it.
//
// The error is fs.ErrNotExist for a setting that this kernel, or this network
// namespace, does not have.
func (t Tree) Read(name string) (string, error) {
	path, err := t.path(name)
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read sysctl %s: %w", name, reason(err))
	}
	return strings.TrimSpace(string(b)), nil
}

// Write gives a setting a value unless it has it, and reports whether it wrote.
//
// The error is fs.ErrNotExist for a setting that does not exist,
// fs.ErrPermission for one that this process may not write, ErrReadOnly, or
// syscall.EINVAL for a value that the kernel does not accept.
func (t Tree) Write(name, value string) (changed bool, err error) {
	now, err := t.Read(name)
	if err != nil || now == value {
		return false, err
	}
	path, err := t.path(name)
	if err != nil {
		return false, err
	}
	if err := write(path, value); err != nil {
		return false, fmt.Errorf("set sysctl %s from %q to %q: %w", name, now, value, reason(err))
	}
	return true, nil
}

// write writes a setting in one system call and makes no file.
func write(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value + "\n")
	return errors.Join(err, f.Close())
}

// path returns the file of a setting, which is one below the root.
func (t Tree) path(name string) (string, error) {
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("sysctl %q: %w", name, fs.ErrInvalid)
	}
	root := t.Root
	if root == "" {
		root = "/proc/sys"
	}
	return filepath.Join(root, name), nil
}

// reason strips the path, which repeats the name, and marks a read-only file
// system.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	if errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return err
}
