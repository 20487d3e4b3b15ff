package leftovers_test

import (
	"testing"

	"github.com/nlproxy/nlproxy/dataplane/leftovers"
)

func BenchmarkRemoveNothing(b *testing.B) {
	n := newNode(b)
	n.do(func() error {
		for b.Loop() {
			if _, err := leftovers.Remove(b.Context(), leftovers.Options{Kernel: n.Conn}); err != nil {
				return err
			}
		}
		return nil
	})
}
