package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// A Backend is by which programs kube-proxy programs the kernel.
type Backend string

// IPTablesNFT and IPTablesLegacy are the two programs that are called iptables,
// for mode iptables. NFTables is nft, for mode nftables, with iptables-nft
// beside it, by which kube-proxy removes what its other modes leave; OnlyNFTables
// has none.
const (
	IPTablesNFT    Backend = "iptables-nft"
	IPTablesLegacy Backend = "iptables-legacy"
	NFTables       Backend = "nftables"
	OnlyNFTables   Backend = "nftables without iptables"
)

// names are what programs are called for a backend.
func (b Backend) names() map[string][]string {
	iptables := []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"}
	switch b {
	case IPTablesNFT, IPTablesLegacy:
		return map[string][]string{string(b): iptables}
	case NFTables:
		return map[string][]string{"nft": {"nft"}, string(IPTablesNFT): iptables}
	default:
		return map[string][]string{"nft": {"nft"}}
	}
}

// path is the search path of a kube-proxy: a folder of links to the backend's
// programs, each of which is one program of several names. t is skipped if one
// is not installed.
func (b Backend) path(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, links := range b.names() {
		labtest.Tools(t, name)
		found, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		program, err := filepath.EvalSymlinks(found)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			if err := os.Symlink(program, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}
