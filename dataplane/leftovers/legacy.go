package leftovers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nlproxy/nlproxy/dataplane/legacy"
)

func lookForLegacy(Options) ([]Found, remover, error) {
	tables, err := legacy.Find(legacy.Options{})
	found := make([]Found, len(tables))
	for i, t := range tables {
		found[i] = Found{Kind: "legacy table", Name: t.Table.String(), Note: describeLegacy(t)}
	}
	return found, func(ctx context.Context, found []Found) error { return removeLegacy(ctx, tables, found) }, err
}

func removeLegacy(ctx context.Context, tables []legacy.Removed, found []Found) error {
	removed, err := legacy.Remove(ctx, legacy.Options{})
	for i, t := range tables {
		if !slices.ContainsFunc(removed, func(r legacy.Removed) bool { return r.Table == t.Table }) {
			found[i].Kept = err
		}
	}
	return err
}

// describeLegacy says what of a table goes, and what becomes of the rest.
func describeLegacy(t legacy.Removed) string {
	s := fmt.Sprintf("%d chains and %d rules", len(t.Chains), t.Rules)
	if len(t.Emptied) > 0 {
		s += "; rules of others jump to " + strings.Join(t.Emptied, ", ") + ", empty now"
	}
	if len(t.Dropping) > 0 {
		s += "; " + strings.Join(t.Dropping, ", ") + " drops what no rule accepts any more"
	}
	return s
}
