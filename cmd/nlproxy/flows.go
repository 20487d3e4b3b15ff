package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/spf13/cobra"
)

// flowFlags are the flags of the command as they are given.
type flowFlags struct {
	service, to, family string
	watch               bool
}

func flowsCommand() *cobra.Command {
	var flags flowFlags
	cmd := &cobra.Command{
		Use:   "flows",
		Short: "Print the connections that go through services",
		Long: strings.TrimSpace(`
Print the connections that go through services: who connects to which service,
which endpoint answers, the state, and the time left if no more packets come.

Names of services are read from the rules in the kernel and connections from
its connection tracking, so neither an API server nor a running nlproxy is asked.
An endpoint of "-" means that the connection was not translated: it began before
its service was served here.

With --watch, connections are printed as they begin, change and end. The kernel
tells only of those that begin while somebody watches, unless
net.netfilter.nf_conntrack_events is 1.`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			only, err := flags.filter()
			if err != nil {
				return err
			}
			return printFlows(cmd.Context(), only, flags.watch, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVarP(&flags.service, "service", "s", "", "only this service: NAMESPACE/NAME")
	cmd.Flags().StringVar(&flags.to, "to", "", "only to this service address or endpoint: ADDR, ADDR:PORT or [ADDR]:PORT")
	cmd.Flags().StringVarP(&flags.family, "family", "f", "", "only this family: ipv4 or ipv6")
	cmd.Flags().BoolVarP(&flags.watch, "watch", "w", false, "print what changes, until interrupted")
	return cmd
}

// flowFilter says which flows to print; its zero value is all.
type flowFilter struct {
	service model.Name
	// to has port 0 for any, and no address for any.
	to     netip.AddrPort
	family model.Family
}

// filter reads the flags. The error names the first that cannot be used.
func (f flowFlags) filter() (only flowFilter, err error) {
	if only.service, err = parseService(f.service); err != nil {
		return only, err
	}
	if only.to, err = parseTo(f.to); err != nil {
		return only, err
	}
	only.family, err = parseFamily(f.family)
	return only, err
}

func parseService(text string) (model.Name, error) {
	if text == "" {
		return model.Name{}, nil
	}
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.ContainsAny(name, "/:") {
		return model.Name{}, fmt.Errorf("--service %q: must be NAMESPACE/NAME", text)
	}
	return model.Name{Namespace: namespace, Name: name}, nil
}

func parseTo(text string) (netip.AddrPort, error) {
	if text == "" {
		return netip.AddrPort{}, nil
	}
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		return netip.AddrPortFrom(addr.Unmap(), 0), nil
	}
	to, err := netip.ParseAddrPort(text)
	if err != nil || to.Addr().Zone() != "" || to.Port() == 0 {
		return netip.AddrPort{}, fmt.Errorf("--to %q: must be ADDR, ADDR:PORT or, for IPv6, [ADDR]:PORT", text)
	}
	return netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), nil
}

func parseFamily(text string) (model.Family, error) {
	for f, name := range familyNames {
		if text == name {
			return f, nil
		}
	}
	if text != "" {
		return 0, fmt.Errorf("--family %q: must be ipv4 or ipv6", text)
	}
	return 0, nil
}

// wants reports whether to print a flow to a port of a service.
func (o flowFilter) wants(f *conntrack.Flow, name model.PortName) bool {
	return (o.service == model.Name{} || o.service == name.Name) &&
		(o.family == 0 || o.family == f.Family) &&
		(o.meets(f.Original.Destination) || o.meets(f.Reply.Source))
}

func (o flowFilter) meets(a netip.AddrPort) bool {
	return (!o.to.Addr().IsValid() || o.to.Addr() == a.Addr()) && (o.to.Port() == 0 || o.to.Port() == a.Port())
}

func printFlows(ctx context.Context, only flowFilter, watch bool, out, complaints io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	names, err := newServiceNames(ctx)
	if err != nil {
		return err
	}
	defer names.close()
	if (only.service != model.Name{}) && !names.has(only.service) {
		fmt.Fprintf(complaints, "--service %s: no rule in this network namespace is for it\n", only.service)
	}
	if watch {
		return watchFlows(ctx, only, names, out, complaints)
	}
	flows, err := listFlows(ctx, only, names)
	if errors.Is(err, conntrack.ErrInterrupted) {
		fmt.Fprintln(complaints, "connections change so fast that some may be missing")
		err = nil
	}
	if err != nil {
		return err
	}
	return printAligned(out, flows)
}

// serviceFlow is a flow to a port of a service.
type serviceFlow struct {
	conntrack.Flow
	name model.PortName
}

// dumpAttempts is how often flows are listed if each list is interrupted.
const dumpAttempts = 3

// listFlows lists flows in the order in which they are printed. With
// ErrInterrupted, some may be missing.
func listFlows(ctx context.Context, only flowFilter, names *serviceNames) (flows []serviceFlow, err error) {
	table, err := conntrack.Dial()
	if err != nil {
		return nil, err
	}
	defer table.Close()
	filter := conntrack.Filter{Family: only.family, Protocols: []model.Protocol{model.TCP, model.UDP, model.SCTP}}
	for range dumpAttempts {
		flows = flows[:0]
		err = table.Dump(ctx, filter, func(f *conntrack.Flow) bool {
			if name, ok := names.of(f); ok && only.wants(f, name) {
				flows = append(flows, serviceFlow{*f, name})
			}
			return true
		})
		if !errors.Is(err, conntrack.ErrInterrupted) {
			break
		}
	}
	slices.SortFunc(flows, serviceFlow.compare)
	return slices.CompactFunc(flows, func(a, b serviceFlow) bool { return a.compare(b) == 0 }), err
}

// compare orders by what tells flows from each other, the service first.
func (f serviceFlow) compare(o serviceFlow) int {
	return cmp.Or(
		f.name.Compare(o.name.Name),
		strings.Compare(f.name.Port, o.name.Port),
		cmp.Compare(f.Protocol, o.Protocol),
		f.Original.Destination.Compare(o.Original.Destination),
		f.Original.Source.Compare(o.Original.Source),
		cmp.Compare(f.Zone, o.Zone))
}
