package watch

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lines returns where each document begins and its JSON, or the line of its
// error.
func lines(documents []document) []string {
	var all []string
	for _, d := range documents {
		text := string(d.data)
		if d.err != nil {
			text = "bad"
		}
		all = append(all, fmt.Sprintf("%d: %s", d.line, text))
	}
	return all
}

func TestReadYAML(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		want []string // line and JSON
	}{
		"nothing":                      {"", nil},
		"only comments and separators": {"---\n# nothing\n---\n...\n", nil},
		"one document":                 {"a: 1\n", []string{`1: {"a":1}`}},
		"no line end":                  {"---\na: 1", []string{`2: {"a":1}`}},
		"several": {
			"# first\n\na: 1\n---\n\n# second\nb: 2\n--- # third\nc: 3\n...\n---\nd: 4\n",
			[]string{`3: {"a":1}`, `7: {"b":2}`, `9: {"c":3}`, `12: {"d":4}`},
		},
		"a document on the line of its separator": {"--- {a: 1}\n--- {b: 2}\n", []string{`1: {"a":1}`, `2: {"b":2}`}},
		"CRLF":                         {"a: 1\r\n---\r\nb: 2\r\n", []string{`1: {"a":1}`, `3: {"b":2}`}},
		"dashes that separate nothing": {"a: |\n  ---\n---b: 2\n", []string{`1: {"---b":2,"a":"---\n"}`}},
		"a bad one among good ones":    {"a: 1\n---\nb: [\n---\nc: 3\n", []string{`1: {"a":1}`, "3: bad", `5: {"c":3}`}},
		"a field that is there twice":  {"x: 0\n---\na: 1\nb: 2\na: 3\n", []string{`1: {"x":0}`, "5: bad"}},
		"JSON":                         {`{"a": 1}` + "\n---\n" + `{"b": 2}`, []string{`1: {"a":1}`, `3: {"b":2}`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := lines(readYAML([]byte(test.file)))
			if diff := cmp.Diff(test.want, got, compareFacts); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadJSON(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		want []string
	}{
		"nothing":         {" \n", nil},
		"several":         {"{\"a\":1}\n\n{\"b\":2} {\"c\":3}\n", []string{`1: {"a":1}`, `3: {"b":2}`, `3: {"c":3}`}},
		"the rest is bad": {"{\"a\":1}\n{\n\"b\": x}\n{\"c\":3}\n", []string{`1: {"a":1}`, "3: bad"}},
		"cut off":         {"{\"a\":1}\n{\"b\":", []string{`1: {"a":1}`, "2: bad"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := lines(readJSON([]byte(test.file)))
			if diff := cmp.Diff(test.want, got, compareFacts); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
		})
	}
}
