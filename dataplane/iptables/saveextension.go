package iptables

import (
	"fmt"
	"math"
	"net/netip"
	"strings"

	"github.com/google/nftables/expr"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/xt"
)

// match prints an extension that tests.
func (l *line) match(m *expr.Match) {
	info, err := xt.ParseMatch(l.family, m)
	name, options := m.Name, ""
	known := err == nil
	if known {
		switch i := info.(type) {
		case xt.CommentInfo:
			options = " --comment " + quoted(i.Text)
		case xt.TCPInfo:
			options = portOptions(i.Source, i.Destination, i.Invert)
			known = i.Option == 0 && i.FlagMask == 0 && i.Invert < 4
		case xt.UDPInfo:
			options = portOptions(i.Source, i.Destination, i.Invert)
		case xt.SCTPInfo:
			options = sctpOptions(i)
			known = i.Flags&xt.SCTPChunks == 0
		case xt.StatisticInfo:
			options = statisticOptions(i)
		case xt.RecentInfo:
			options = recentOptions(l.family, i)
		case xt.AddrTypeInfo:
			options = addrTypeOptions(i)
		case xt.ConntrackInfo:
			name, options = conntrackOptions(i)
		case xt.NFAcctInfo:
			options = " --nfacct-name  " + quoted(i.Name) // two blanks, as the tool
		}
	}
	if !known {
		l.unknown("match %s revision %d", m.Name, m.Rev)
		return
	}
	l.say(" -m %s%s", name, options)
}

// target prints an extension that acts.
func (l *line) target(t *expr.Target) {
	info, err := xt.ParseTarget(l.family, t)
	options := ""
	known := err == nil
	if known {
		switch i := info.(type) {
		case xt.MarkInfo:
			options = fmt.Sprintf(" --set-xmark 0x%x/0x%x", i.Mark, i.Mask)
		case xt.DNATInfo:
			options = dnatOptions(i)
		case xt.MasqueradeInfo:
			options = masqueradeOptions(i)
		case xt.RejectInfo:
			var with string
			with, known = rejections[l.family][i.With]
			options = " --reject-with " + with
		}
	}
	if !known {
		l.unknown("target %s revision %d", t.Name, t.Rev)
		return
	}
	l.action = " -j " + t.Name + options
}

// quoted is a string as xtables_save_string prints it (libxtables/xtables.c,
// 1.8.9): bare if a shell and iptables-restore take it for one word.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`, `'`, `\'`).Replace(s) + `"`
}

// inverted is what stands before an option whose test is inverted.
func inverted(yes bool) string {
	if yes {
		return " !"
	}
	return ""
}

func ports(r xt.PortRange) string {
	if r.Low == r.High {
		return fmt.Sprint(r.Low)
	}
	return fmt.Sprintf("%d:%d", r.Low, r.High)
}

// portOptions prints ranges of tcp and udp; bit 0 of invert is for the source,
// bit 1 for the destination.
func portOptions(source, destination xt.PortRange, invert uint8) string {
	var s string
	if source != xt.AnyPort || invert&1 != 0 {
		s += inverted(invert&1 != 0) + " --sport " + ports(source)
	}
	if destination != xt.AnyPort || invert&2 != 0 {
		s += inverted(invert&2 != 0) + " --dport " + ports(destination)
	}
	return s
}

func sctpOptions(i xt.SCTPInfo) string {
	var s string
	if i.Flags&xt.SCTPSource != 0 {
		s += inverted(i.Invert&xt.SCTPSource != 0) + " --sport " + ports(i.Source)
	}
	if i.Flags&xt.SCTPDestination != 0 {
		s += inverted(i.Invert&xt.SCTPDestination != 0) + " --dport " + ports(i.Destination)
	}
	return s
}

func statisticOptions(i xt.StatisticInfo) string {
	return fmt.Sprintf(" --mode random%s --probability %.11f",
		inverted(i.Invert), float64(i.Probability)/(math.MaxInt32+1))
}

// recentFlags are the options for flags of a RecentInfo, by where they stand.
var recentFlags = []struct {
	flag   uint8
	option string
}{
	{xt.RecentFlagSet, " --set"},
	{xt.RecentFlagCheck, " --rcheck"},
	{xt.RecentFlagUpdate, " --update"},
	{xt.RecentFlagRemove, " --remove"},
}

func recentOptions(f model.Family, i xt.RecentInfo) string {
	var s strings.Builder
	s.WriteString(inverted(i.Invert))
	for _, known := range recentFlags {
		if i.Flags&known.flag != 0 {
			s.WriteString(known.option)
		}
	}
	option := func(format string, yes bool, args ...any) {
		if yes {
			fmt.Fprintf(&s, format, args...)
		}
	}
	option(" --seconds %d", i.Seconds != 0, i.Seconds)
	option(" --reap", i.Flags&xt.RecentFlagReap != 0)
	option(" --hitcount %d", i.HitCount != 0, i.HitCount)
	option(" --rttl", i.Flags&xt.RecentFlagTTL != 0)
	mask, _ := netip.AddrFromSlice(i.Mask[:f.Bits()/8])
	option(" --name %s --mask %s", true, i.Name, mask)
	option(" --rdest", i.Destination)
	option(" --rsource", !i.Destination)
	return s.String()
}

// addrTypes are the types of an AddrTypeInfo by bit.
var addrTypes = []string{"UNSPEC", "UNICAST", "LOCAL", "BROADCAST", "ANYCAST", "MULTICAST",
	"BLACKHOLE", "UNREACHABLE", "PROHIBIT", "THROW", "NAT", "XRESOLVE"}

func addrTypeOptions(i xt.AddrTypeInfo) string {
	var s strings.Builder
	if i.Source != 0 {
		s.WriteString(inverted(i.Flags&1 != 0) + " --src-type " + bitNames(i.Source, addrTypes))
	}
	if i.Destination != 0 {
		s.WriteString(inverted(i.Flags&2 != 0) + " --dst-type " + bitNames(i.Destination, addrTypes))
	}
	if i.Flags&4 != 0 {
		s.WriteString(" --limit-iface-in")
	}
	if i.Flags&8 != 0 {
		s.WriteString(" --limit-iface-out")
	}
	return s.String()
}

func bitNames(bits uint16, names []string) string {
	var set []string
	for i, name := range names {
		if bits&(1<<i) != 0 {
			set = append(set, name)
		}
	}
	return strings.Join(set, ",")
}

// connStates are in the order in which iptables prints them.
var connStates = []struct {
	state xt.ConnState
	name  string
}{
	{xt.Invalid, "INVALID"}, {xt.New, "NEW"}, {xt.Related, "RELATED"}, {xt.Established, "ESTABLISHED"},
	{xt.Untracked, "UNTRACKED"}, {xt.SNATed, "SNAT"}, {xt.DNATed, "DNAT"},
}

func conntrackOptions(i xt.ConntrackInfo) (name, options string) {
	var set []string
	for _, s := range connStates {
		if i.States&s.state != 0 {
			set = append(set, s.name)
		}
	}
	name, option := "conntrack", " --ctstate "
	if i.Alias {
		name, option = "state", " --state "
	}
	return name, inverted(i.Invert) + option + strings.Join(set, ",")
}

func dnatOptions(i xt.DNATInfo) string {
	var to string
	if i.Flags&xt.NATAddress != 0 {
		to = i.Min.Addr().String()
		if i.Max.Addr() != i.Min.Addr() {
			to += "-" + i.Max.Addr().String()
		}
		if i.Min.Addr().Is6() && i.Flags&xt.NATPort != 0 {
			to = "[" + to + "]"
		}
	}
	if i.Flags&xt.NATPort != 0 {
		to += ":" + natPorts(i.Min.Port(), i.Max.Port())
	}
	if i.Flags&xt.NATPortOffset != 0 {
		to += fmt.Sprintf("/%d", i.BasePort)
	}
	return " --to-destination " + to + natFlags(i.Flags)
}

func masqueradeOptions(i xt.MasqueradeInfo) string {
	var s string
	if i.Flags&xt.NATPort != 0 {
		s = " --to-ports " + natPorts(i.Ports.Low, i.Ports.High)
	}
	return s + natFlags(i.Flags)
}

func natPorts(low, high uint16) string {
	if low == high {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d-%d", low, high)
}

func natFlags(flags xt.NATFlags) string {
	var s string
	if flags&xt.NATRandom != 0 {
		s += " --random"
	}
	if flags&xt.NATRandomFully != 0 {
		s += " --random-fully"
	}
	if flags&xt.NATPersistent != 0 {
		s += " --persistent"
	}
	return s
}

// rejections are what a RejectInfo means: enum ipt_reject_with in
// linux/netfilter_ipv4/ipt_REJECT.h, enum ip6t_reject_with in
// linux/netfilter_ipv6/ip6t_REJECT.h.
var rejections = map[model.Family]map[uint32]string{
	model.IPv4: {0: "icmp-net-unreachable", 1: "icmp-host-unreachable", 2: "icmp-proto-unreachable",
		3: "icmp-port-unreachable", 5: "icmp-net-prohibited", 6: "icmp-host-prohibited",
		7: "tcp-reset", 8: "icmp-admin-prohibited"},
	model.IPv6: {0: "icmp6-no-route", 1: "icmp6-adm-prohibited", 3: "icmp6-addr-unreachable",
		4: "icmp6-port-unreachable", 6: "tcp-reset", 7: "icmp6-policy-fail", 8: "icmp6-reject-route"},
}
