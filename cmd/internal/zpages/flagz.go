package zpages

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

type flagz struct {
	header
	Flags map[string]string `json:"flags,omitempty"`
}

// Flagz serves /flagz: the flags of the command line, by their names, with the
// values they have, given or not. None of them may be a secret.
func Flagz(flags map[string]string) http.Handler {
	return page{"Flagz", func(h header) (object, error) { return flagz{h, flags}, nil }}
}

// text has a flag a line. Where kube-proxy draws one of four delimiters by lot,
// this is always the same.
func (f flagz) text() string {
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f.Flags)) {
		fmt.Fprintf(&lines, "%s: %s\n", name, f.Flags[name])
	}
	return lines.String()
}
