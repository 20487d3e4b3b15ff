package main

import (
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/sysctl"
	"go.uber.org/zap"
)

// routeLocalnet is the setting, below /proc/sys, that node ports on 127.0.0.0/8
// depend on.
const routeLocalnet = "net/ipv4/conf/all/route_localnet"

// prepare sets what needs more rights than CAP_NET_ADMIN: the settings of
// connection tracking and, if node ports are served on 127.0.0.0/8, its
// routing. A later run with that capability alone finds them as they should be.
// It needs neither an API server nor rules. What cannot be set is logged, and is
// no failure: services work without it.
func prepare(c config.Config, log *zap.Logger) error {
	// A request to connection tracking loads its modules, and with them come
	// the settings (nfnetlink_rcv_msg in net/netfilter/nfnetlink.c, 6.18).
	if _, err := conntrack.ReadStats(); err != nil {
		log.Warn("connection tracking does not answer", zap.Error(err))
	}
	limits, err := newLimits(c, log)
	if err != nil {
		return err
	}
	limits.Apply()
	loopback := model.Node{Local: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}}
	if planOptions(c, nil, false).NeedsRouteLocalnet(loopback) {
		if err := setRouteLocalnet(); err != nil {
			log.Warn("node ports on 127.0.0.0/8 will not work: set net.ipv4.conf.all.route_localnet to 1 on this node, "+
				"or iptables.localhostNodePorts (--iptables-localhost-nodeports) to false", zap.Error(err))
		}
	}
	return nil
}

func setRouteLocalnet() error {
	var settings sysctl.Tree
	_, err := settings.Write(routeLocalnet, "1")
	return err
}

// oomScoreAdj is how readily the kernel ends this process when memory is short.
const oomScoreAdj = "/proc/self/oom_score_adj"

// adjustOOMScore writes score unless it is there already: a lower one than the
// present takes CAP_SYS_RESOURCE (__set_oom_adj in fs/proc/base.c, 6.18).
func adjustOOMScore(path string, score int) error {
	now, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	want := strconv.Itoa(score)
	if strings.TrimSpace(string(now)) == want {
		return nil
	}
	return os.WriteFile(path, []byte(want), 0)
}
