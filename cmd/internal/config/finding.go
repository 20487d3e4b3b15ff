package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// finding is what there is to say of one field.
type finding struct{ field, text string }

// findings are what a configuration is refused for, and what is only to be
// known.
type findings struct{ refused, noted []finding }

// refuse tells that a value is wrong. text says what it is and what is allowed.
func (f *findings) refuse(field, text string, args ...any) {
	f.refused = append(f.refused, finding{field, fmt.Sprintf(text, args...)})
}

// note tells of something that is accepted and does not do what it seems to.
func (f *findings) note(field, text string, args ...any) {
	f.noted = append(f.noted, finding{field, fmt.Sprintf(text, args...)})
}

// origin says where the values of fields come from.
type origin struct {
	// file is the name of the file, and lines the line of each field in it;
	// empty for the command line.
	file  string
	lines map[string]int
	// flags are the fields that flags gave in spite of the file.
	flags map[string]bool
}

// errors are the findings as errors, one each, joined; nil for none.
func (o origin) errors(fs []finding) error {
	var errs []error
	for _, line := range o.print(fs) {
		errs = append(errs, errors.New(line))
	}
	return errors.Join(errs...)
}

// print returns a line for each finding, in the order of the file.
func (o origin) print(fs []finding) []string {
	fs = slices.Clone(fs)
	slices.SortStableFunc(fs, func(a, b finding) int { return cmp.Compare(o.line(a.field), o.line(b.field)) })
	var lines []string
	for _, f := range fs {
		lines = append(lines, o.place(f.field)+": "+f.text)
	}
	return lines
}

// place names a field so that it is found again.
func (o origin) place(field string) string {
	if o.file == "" || o.byFlag(field) {
		return flagFor(field)
	}
	if line := o.line(field); line > 0 {
		return fmt.Sprintf("%s:%d: %s", o.file, line, field)
	}
	return o.file + ": " + field
}

func (o origin) byFlag(field string) bool {
	whole, _, _ := strings.Cut(field, "[")
	return o.flags[whole]
}

// line returns the line of a field or, if it is not in the file, of the nearest
// field around it; 0 if there is none.
func (o origin) line(field string) int {
	for field != "" && !o.byFlag(field) {
		if line, ok := o.lines[field]; ok {
			return line
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	return 0
}

// flagFor returns the flag that sets a field, with what comes after the part of
// the field that it sets; the field itself if no flag does.
func flagFor(field string) string {
	for _, f := range flags() {
		if rest, ok := strings.CutPrefix(field, f.field); ok && f.field != "" && (rest == "" || strings.ContainsRune(".[", rune(rest[0]))) {
			return "--" + f.name + rest
		}
	}
	return field
}
