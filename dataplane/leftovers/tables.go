package leftovers

import (
	"context"
	"slices"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// tableName is that of the table that holds all of the nftables mode, one in
// each family (pkg/proxy/nftables, kube-proxy 1.29 to 1.37).
const tableName = "kube-proxy"

func lookForTables(o Options) ([]Found, remover, error) {
	all, err := o.Kernel.Tables()
	if err != nil {
		return nil, nil, err
	}
	var found []Found
	var ops []rules.Op
	for _, family := range model.Families {
		table := rules.Table{Family: family, Name: tableName}
		if slices.Contains(all, table) {
			found = append(found, Found{Kind: "nftables table", Name: table.String()})
			ops = append(ops, rules.Op{Verb: rules.DeleteTable, Place: rules.Place{Chain: rules.ChainID{Table: table}, Index: -1}})
		}
	}
	return found, func(_ context.Context, found []Found) error {
		_, err := o.Kernel.Apply(ops)
		return keep(found, err)
	}, nil
}

// keep says of each that it stays because of err, if there is one, and returns
// err.
func keep(found []Found, err error) error {
	for i := range found {
		found[i].Kept = err
	}
	return err
}
