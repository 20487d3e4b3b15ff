package watch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// document is one object of a manifest file, as JSON, or why it is none.
type document struct {
	// line is where it begins or, if err is set, where that was found.
	line int
	data []byte
	err  error
}

// readYAML splits a file into its YAML documents. One that cannot be read
// leaves the others as they are.
func readYAML(file []byte) []document {
	var all []document
	for _, d := range splitYAML(file) {
		data, err := yaml.YAMLToJSONStrict(d.data)
		switch {
		case err != nil:
			all = append(all, d.fault(err))
		case !bytes.Equal(data, []byte("null")):
			all = append(all, document{line: d.begin(), data: data})
		}
	}
	return all
}

// splitYAML cuts at the lines that YAML reserves for it: "---" and "...", alone
// or followed by a blank.
func splitYAML(file []byte) []document {
	var all []document
	current := document{line: 1}
	line := 0
	for text := range bytes.Lines(file) {
		line++
		if !separates(text) {
			current.data = append(current.data, text...)
			continue
		}
		all = append(all, current)
		// What follows "---" on its line belongs to the document.
		current = document{line: line, data: append([]byte("   "), text[3:]...)}
	}
	return append(all, current)
}

func separates(text []byte) bool {
	if !bytes.HasPrefix(text, []byte("---")) && !bytes.HasPrefix(text, []byte("...")) {
		return false
	}
	return len(text) == 3 || bytes.IndexByte([]byte(" \t\r\n"), text[3]) >= 0
}

// begin returns the line of the first text that is not a comment.
func (d document) begin() int {
	line := d.line
	for text := range bytes.Lines(d.data) {
		if text = bytes.TrimSpace(text); len(text) > 0 && text[0] != '#' {
			return line
		}
		line++
	}
	return d.line
}

var yamlLine = regexp.MustCompile(`\bline (\d+)\b`)

// fault returns what a YAML parser found wrong, with the lines of the file for
// those of the document.
func (d document) fault(err error) document {
	at := 0
	text := yamlLine.ReplaceAllStringFunc(err.Error(), func(found string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(found, "line "))
		if err != nil {
			return found
		}
		if at == 0 {
			at = d.line + n - 1
		}
		return "line " + strconv.Itoa(d.line+n-1)
	})
	return document{line: cmp.Or(at, d.begin()), err: errors.New(strings.Join(strings.Fields(text), " "))}
}

// readJSON splits a file into its JSON values. Where one is bad, the rest of
// the file is lost with it.
func readJSON(file []byte) []document {
	var all []document
	decoder := json.NewDecoder(bytes.NewReader(file))
	for {
		var data json.RawMessage
		err := decoder.Decode(&data)
		switch {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			return append(all, document{line: jsonErrorLine(file, err), err: err})
		}
		begin := decoder.InputOffset() - int64(len(data))
		all = append(all, document{line: lineAt(file, begin), data: data})
	}
}

// jsonErrorLine returns the line of a syntax error; any other error is that the
// file ends too soon.
func jsonErrorLine(file []byte, err error) int {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return lineAt(file, syntax.Offset)
	}
	return lineAt(file, int64(len(file)))
}

func lineAt(file []byte, offset int64) int {
	offset = min(max(offset, 0), int64(len(file)))
	return 1 + bytes.Count(file[:offset], []byte("\n"))
}
