package traffic

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/iptables"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/plan"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/integration/golden"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
	"github.com/nlproxy/nlproxy/watch"
)

// seed is an input of FuzzObjectsToRuleset.
type seed struct {
	objects []byte
	options uint16
}

// seeds are the golden cases and the hostile objects, each with other options.
func seeds(t testing.TB) []seed {
	var all []seed
	for _, c := range golden.Cases(t) {
		all = append(all, seed{c.Objects, uint16(len(all)) * 40503})
	}
	for _, h := range hostiles() {
		all = append(all, seed{[]byte(nodeManifest + h.objects), uint16(len(all)) * 40503})
	}
	web := service{name: "web", number: 1, kind: "LoadBalancer", endpoints: at("pod-1", "remote-1"), spec: sticky(10) + ", externalTrafficPolicy: Local"}
	return append(all, seed{[]byte(manifests(web)), 0}, seed{nil, 0})
}

// fuzzOptions are settings that 16 bits choose.
func fuzzOptions(bits uint16) plan.Options {
	o := settings()
	o.MasqueradeBit = uint8(bits & 31)
	o.MasqueradeAll = bits&(1<<5) != 0
	o.NoExternalIPs = bits&(1<<6) != 0
	o.NodePorts = plan.NodePorts{Localhost: bits&(1<<7) != 0, Primary: bits&(1<<8) != 0}
	if bits&(1<<9) != 0 {
		o.NodePorts.Prefixes = []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fd00:7::/64")}
	}
	o.DropInvalid = bits&(1<<10) != 0
	o.Counters = plan.Counters{InvalidDropped: bits&(1<<11) != 0, LocalhostNodePorts: bits&(1<<12) != 0}
	o.Detect.Mode = plan.DetectMode(bits >> 13 % uint16(plan.DetectInterfacePrefix+1))
	o.Detect.Interface = "cni0"
	return o
}

// read is what there is according to objects, of which anything may be wrong.
func (s seed) read(t testing.TB) model.Snapshot {
	t.Helper()
	snapshot, _, err := watch.Read("objects.yaml", bytes.NewReader(s.objects), watch.Options{NodeName: "node1"})
	if err != nil {
		t.Fatal(err)
	}
	snapshot.Node.Local = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("192.168.7.1"), netip.MustParseAddr("fd00:7::1")}
	return snapshot
}

// FuzzObjectsToRuleset has bytes become objects, decisions, rules and messages:
// whatever the bytes are, each step takes what the one before gives.
func FuzzObjectsToRuleset(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s.objects, s.options)
	}
	f.Fuzz(func(t *testing.T, objects []byte, options uint16) {
		s := seed{objects, options}
		snapshot := s.read(t)
		for _, family := range model.Families {
			p := plan.New(family, fuzzOptions(options)).BuildAll(snapshot)
			for part := range iptables.Encode(p) {
				encode(t, part)
			}
		}
	})
}

// nameLimit is the longest name of a chain in bytes that iptables can show
// (XT_EXTENSION_MAXNAMELEN, linux/netfilter/x_tables.h, Linux 6.18, less the
// closing zero).
const nameLimit = 28

func encode(t *testing.T, part rules.Part) {
	t.Helper()
	for _, b := range part.Blocks {
		if len(b.Chain.ID.Name) > nameLimit {
			t.Errorf("%s: %d bytes are too long a name", b.Chain.ID, len(b.Chain.ID.Name))
		}
		for i, r := range b.Rules {
			payload, err := rules.Encode(part.Family, r.Exprs)
			if err == nil {
				_, err = rules.Canonical(nil, payload)
			}
			if err != nil {
				t.Errorf("%v: %v", rules.Place{Owner: part.Owner, Chain: b.Chain.ID, Index: i}, err)
			}
		}
	}
}

// TestKernelTakesWhateverObjectsBecome writes the ruleset of each seed into one
// kernel after the other, and once more, which changes nothing.
func TestKernelTakesWhateverObjectsBecome(t *testing.T) {
	t.Parallel()
	var conn *kernel.Conn
	err := labtest.Namespace(t).Do(func() (err error) {
		if conn, err = kernel.Dial(kernel.Options{}); err == nil {
			_, err = conn.EnsureCounters([]string{iptables.InvalidDropped, iptables.LocalhostNodePorts})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i, s := range seeds(t) {
		snapshot := s.read(t)
		for _, again := range []bool{false, true} {
			var report dataplane.Report
			data, err := dataplane.New(dataplane.Options{Reader: conn, Writer: conn, Plan: fuzzOptions(s.options),
				Observer: func(r dataplane.Report) { report = r }})
			if err == nil {
				err = data.Set(t.Context(), snapshot)
			}
			if err != nil || len(report.Aside) > 0 || again && report.Operations > 0 {
				t.Errorf("seed %d, again %v: %v, set aside %v, %d operations\n%s", i, again, err, report.Aside, report.Operations, s.objects)
			}
		}
	}
}
