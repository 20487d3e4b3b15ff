package traffic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// leavingTable notes, behind all other rules, where packets go that leave the
// node for the network.
const leavingTable = `
table inet leaving {}
delete table inet leaving
table inet leaving {
	set v4 { type ipv4_addr . inet_proto; flags dynamic; size 65535; }
	set v6 { type ipv6_addr . inet_proto; flags dynamic; size 65535; }
	chain last {
		type filter hook postrouting priority 400;
		oifname eth0 add @v4 { ip daddr . meta l4proto }
		oifname eth0 add @v6 { ip6 daddr . meta l4proto }
	}
}
`

// leaving makes sure, when it is told that all is done, that what rows say is
// untouched has left the node for where it was sent to.
func (p *proxy) leaving(t *testing.T, rows []row) (done func(*testing.T)) {
	t.Helper()
	var want []string
	for _, r := range rows {
		if r.want.kind != lab.Unreachable {
			continue
		}
		for _, a := range p.attempts(t, r) {
			want = append(want, fmt.Sprintf("%s . %s", a.to.Addr(), a.network))
		}
	}
	if len(want) == 0 {
		return func(*testing.T) {}
	}
	p.run(t, leavingTable, "nft", "-f", "-")
	return func(t *testing.T) {
		t.Helper()
		left := p.run(t, "", "nft", "list", "table", "inet", "leaving")
		for _, w := range want {
			if !strings.Contains(left, w) {
				t.Errorf("%s: no packet left the node for it", w)
			}
		}
		p.run(t, "", "nft", "delete", "table", "inet", "leaving")
	}
}
