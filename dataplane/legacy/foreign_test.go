package legacy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// foreignText is rules of others: of every kind of match and target that keeps
// memory or has a kernel's pointer in it, without a target, with a goto, in
// chains that jump to each other, with policies and counters.
//
// NET is a network of the family, SET its set.
const foreignText = `*raw
:PREROUTING ACCEPT [11:1100]
:OUTPUT ACCEPT [12:1200]
[1:10] -A PREROUTING -p udp -m udp --dport 9 -j CT --notrack
[2:20] -A OUTPUT -p tcp -m tcp --sport 9 -j CT --notrack
COMMIT
*mangle
:PREROUTING ACCEPT [13:1300]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [14:1400]
:POSTROUTING ACCEPT [0:0]
:KUBE-IPTABLES-HINT - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
[3:30] -A PREROUTING -i eth9 -j MARK --set-xmark 0x10/0xff
[4:40] -A FORWARD -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
[5:50] -A OUTPUT -j CONNMARK --save-mark --nfmask 0xff --ctmask 0xff
COMMIT
*nat
:PREROUTING ACCEPT [15:1500]
:INPUT ACCEPT [0:0]
:OUTPUT DROP [16:1600]
:POSTROUTING ACCEPT [17:1700]
:A-LOOP - [0:0]
:KUBE-MARK-DROP - [0:0]
:ZZ-LAST - [0:0]
[6:60] -A PREROUTING -d NET -p tcp -m tcp --dport 80 -j DNAT --to-destination ADDRESS:8080
[7:70] -A PREROUTING -m addrtype --dst-type LOCAL -j A-LOOP
[8:80] -A POSTROUTING -s NET -m mark ! --mark 0x4000/0x4000 -j MASQUERADE
[9:90] -A POSTROUTING -s NET -p udp -j SNAT --to-source ADDRESS
[10:100] -A A-LOOP -p tcp -m multiport --dports 1,2,3:7 -g ZZ-LAST
[11:110] -A A-LOOP -p tcp -m tcp --dport 443 -j REDIRECT --to-ports 8443
[12:120] -A A-LOOP -m comment --comment "KUBE-SERVICES is not meant" -j ZZ-LAST
[13:130] -A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000
[14:140] -A ZZ-LAST -m statistic --mode nth --every 3 --packet 1 -j RETURN
COMMIT
*filter
:INPUT DROP [18:1800]
:FORWARD DROP [19:1900]
:OUTPUT ACCEPT [20:2000]
:A-LIMITS - [0:0]
:B-SETS - [0:0]
:EMPTY - [0:0]
:KUBE-FIREWALL - [0:0]
[15:150] -A INPUT -j KUBE-FIREWALL
[16:160] -A INPUT -m comment --comment "only counts"
[17:170] -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
[18:180] -A INPUT -s NET -j A-LIMITS
[19:190] -A FORWARD -m set --match-set SET src -j B-SETS
[20:200] -A FORWARD -m pkttype --pkt-type multicast -j ACCEPT
[21:210] -A OUTPUT -m owner --uid-owner 0 -j EMPTY
[22:220] -A A-LIMITS -m limit --limit 3/min --limit-burst 7 -j LOG --log-prefix "limited "
[23:230] -A A-LIMITS -p tcp -m tcp --dport 22 -m hashlimit --hashlimit-upto 5/sec --hashlimit-burst 9 --hashlimit-mode srcip --hashlimit-name ssh -j B-SETS
[24:240] -A A-LIMITS -m recent --update --seconds 60 --name seen --mask MASK --rsource -j NFLOG --nflog-prefix  seen --nflog-group 7
[25:250] -A A-LIMITS -p tcp -m connlimit --connlimit-above 12 --connlimit-mask BITS --connlimit-saddr -j REJECT --reject-with tcp-reset
[26:260] -A A-LIMITS -m quota --quota 12345 -m comment --comment "no target, before a chain that goes"
[27:270] -A B-SETS -m string --string "GET" --algo bm -j RETURN
[28:280] -A B-SETS -m string --string "x y" --algo kmp -m length --length 100:200 -j NFQUEUE --queue-num 3
[29:290] -A B-SETS -m u32 --u32 "0x0&0xff=0x1" -m time --timestart 10:00:00 --timestop 11:00:00 -j DROP
[30:300] -A B-SETS -p tcp -m tcp --dport 25 -g EMPTY
[31:310] -A KUBE-FIREWALL -d NET -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
COMMIT
`

// words are what stands for the family in foreignText.
var words = map[model.Family][]string{
	model.IPv4: {"NET", "198.51.100.0/24", "ADDRESS", "198.51.100.7", "SET", "FOREIGN4", "MASK", "255.255.255.255", "BITS", "32"},
	model.IPv6: {"NET", "2001:db8:77::/48", "ADDRESS", "[2001:db8:77::7]", "SET", "FOREIGN6",
		"MASK", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "BITS", "128"},
}

func foreignOf(f model.Family) string {
	text := foreignText
	for w := words[f]; len(w) > 0; w = w[2:] {
		text = strings.ReplaceAll(text, " "+w[0], " "+w[1])
	}
	return strings.ReplaceAll(text, "--to-source [2001:db8:77::7]", "--to-source 2001:db8:77::7")
}

// section is what is in one table, by the order of a dump.
type section struct{ chains, rules []string }

// has reports whether a chain is declared that has the name of this one.
func (s *section) has(chain string) bool {
	name, _, _ := strings.Cut(chain, " ")
	return slices.ContainsFunc(s.chains, func(c string) bool { return strings.HasPrefix(c, name+" ") })
}

// sections cuts what is in each table out of a dump.
func sections(dump string) map[string]*section {
	found := map[string]*section{}
	var s *section
	for line := range strings.Lines(dump) {
		switch {
		case line[0] == '*':
			s = new(section)
			found[strings.TrimSpace(line[1:])] = s
		case line[0] == ':':
			s.chains = append(s.chains, line)
		case chainOf.MatchString(line):
			s.rules = append(s.rules, line)
		}
	}
	return found
}

// mixed is a dump with more in it: chains that are not in it yet, and rules
// that stand in turn with those that are.
func mixed(dump string, more map[string]*section) string {
	var b strings.Builder
	all := sections(dump)
	for _, name := range []string{"raw", "mangle", "nat", "filter"} {
		s, m := all[name], more[name]
		if m == nil {
			m = new(section)
		}
		fmt.Fprintf(&b, "*%s\n%s", name, strings.Join(s.chains, ""))
		for _, c := range m.chains {
			if !s.has(c) {
				b.WriteString(c)
			}
		}
		for i := range max(len(s.rules), len(m.rules)) {
			for _, rules := range [][]string{m.rules, s.rules} {
				if i < len(rules) {
					b.WriteString(rules[i])
				}
			}
		}
		b.WriteString("COMMIT\n")
	}
	return b.String()
}
