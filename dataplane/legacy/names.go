package legacy

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// namesFiles name the tables that a network namespace has, by family
// (xt_proto_init, net/netfilter/x_tables.c, 6.18). They exist where x_tables of
// that family is loaded. To ask for a table that is not named there would load
// and make it.
var namesFiles = map[model.Family]string{
	model.IPv4: "thread-self/net/ip_tables_names",
	model.IPv6: "thread-self/net/ip6_tables_names",
}

// order is that in which tables are freed of leftovers: see the package.
var order = [...]string{"nat", "filter", "mangle"}

// tables are those that there are, in order.
func tables(proc fs.FS) (all []rules.Table, err error) {
	var errs []error
	for _, f := range model.Families {
		b, err := fs.ReadFile(proc, namesFiles[f])
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("list legacy tables of %s: %w", f, err))
		}
		names := strings.Fields(string(b))
		for _, name := range order {
			if slices.Contains(names, name) {
				all = append(all, rules.Table{Family: f, Name: name})
			}
		}
	}
	return all, errors.Join(errs...)
}
