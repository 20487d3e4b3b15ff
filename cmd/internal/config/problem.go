package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// problem is what is wrong with one field.
type problem struct {
	field string
	text  string
}

type problems []problem

// add notes a problem. text says what the value is and what is allowed.
func (ps *problems) add(field, text string, args ...any) {
	*ps = append(*ps, problem{field, fmt.Sprintf(text, args...)})
}

// inFile returns the problems in the order of the file's lines, one error
// each, joined; nil for none.
func (ps problems) inFile(name string, lines map[string]int) error {
	slices.SortStableFunc(ps, func(a, b problem) int {
		return cmp.Compare(lineOf(lines, a.field), lineOf(lines, b.field))
	})
	var errs []error
	for _, p := range ps {
		where := name
		if line := lineOf(lines, p.field); line > 0 {
			where = fmt.Sprintf("%s:%d", name, line)
		}
		errs = append(errs, fmt.Errorf("%s: %s: %s", where, p.field, p.text))
	}
	return errors.Join(errs...)
}

// onCommandLine returns the problems, each under the name of its flag.
func (ps problems) onCommandLine() error {
	var errs []error
	for _, p := range ps {
		errs = append(errs, fmt.Errorf("%s: %s", flagFor(p.field), p.text))
	}
	return errors.Join(errs...)
}

// flagFor returns the flag that sets a field, or the field if none does.
func flagFor(field string) string {
	whole, _, _ := strings.Cut(field, "[")
	for _, f := range flags() {
		if f.field == whole {
			return "--" + f.name + strings.TrimPrefix(field, whole)
		}
	}
	return field
}

// lineOf returns the line of a field or, if it is not in the file, of the
// nearest field around it; 0 if there is none.
func lineOf(lines map[string]int, field string) int {
	for field != "" {
		if line, ok := lines[field]; ok {
			return line
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	return 0
}
