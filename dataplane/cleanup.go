package dataplane

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// Cleanup removes all chains of ours and of a kube-proxy in iptables or ipvs
// mode, and every jump to them from a base chain, in one transaction, or in
// several where the socket may not grow. KUBE-FIREWALL, which the kubelet uses
// too, and what else others own stays. It returns how many operations that took;
// 0 if there was nothing.
func Cleanup(r Reader, w Writer) (int, error) {
	chains, err := r.List(iptables.Tables())
	if err != nil {
		return 0, fmt.Errorf("list rules: %w", err)
	}
	var ops []rules.Op
	for _, e := range rules.NewState(chains, iptables.Leftover).Remove() {
		ops = append(ops, e.Ops...)
	}
	for rest := ops; len(rest) > 0; {
		n := max(w.Fit(rest), 1)
		if _, err := w.Apply(rest[:n]); err != nil {
			return 0, fmt.Errorf("remove rules: %w", err)
		}
		rest = rest[n:]
	}
	return len(ops), nil
}

// TakenOver reports whether the chains that Cleanup removes are those of a
// kube-proxy in iptables mode, which may be running: one of its canaries is
// there, which every Dataplane removes with its first transaction.
func TakenOver(r Reader) (bool, error) {
	for _, f := range model.Families {
		_, err := r.ListChain(iptables.Canary(f))
		switch {
		case err == nil:
			return true, nil
		case !errors.Is(err, fs.ErrNotExist):
			return false, fmt.Errorf("look for a kube-proxy: %w", err)
		}
	}
	return false, nil
}
