package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// flowHeader names the cells of a flow.
var flowHeader = []string{"PROTO", "SERVICE", "CLIENT", "FRONTEND", "ENDPOINT", "STATE", "LEFT", "ZONE"}

// cells are those of a line; the zone's is empty for the default zone.
func (f serviceFlow) cells() []string {
	endpoint, zone := "-", ""
	if f.Translated() {
		endpoint = f.Reply.Source.String()
	}
	if f.Zone != 0 {
		zone = strconv.Itoa(int(f.Zone))
	}
	return []string{f.Protocol.String(), f.name.String(), f.Original.Source.String(), f.Original.Destination.String(),
		endpoint, f.state(), f.left(), zone}
}

// tcpStates are enum tcp_conntrack of linux/netfilter/nf_conntrack_tcp.h.
var tcpStates = [...]string{"", "SYN_SENT", "SYN_RECV", "ESTABLISHED", "FIN_WAIT", "CLOSE_WAIT", "LAST_ACK", "TIME_WAIT",
	"CLOSE", "SYN_SENT2"}

// state is the connection's if it is TCP, or else tells whether it was answered.
// What a flow table has taken over has no state that moves.
func (f serviceFlow) state() string {
	switch {
	case f.Status.Offload():
		return "offloaded"
	case int(f.TCPState) < len(tcpStates) && tcpStates[f.TCPState] != "":
		return tcpStates[f.TCPState]
	case f.Status.Assured():
		return "assured"
	case f.Status.SeenReply():
		return "answered"
	}
	return "unanswered"
}

// left is the time that is left, or "-" where the kernel tells none: it does not
// for flows in a flow table (ctnetlink_dump_info,
// net/netfilter/nf_conntrack_netlink.c, Linux 6.18).
func (f serviceFlow) left() string {
	if f.Timeout == 0 {
		return "-"
	}
	return (time.Duration(f.Timeout) * time.Second).String()
}

// printAligned prints flows under a header.
func printAligned(w io.Writer, flows []serviceFlow) error {
	c := columns{out: w}
	lines := [][]string{flowHeader}
	for _, f := range flows {
		lines = append(lines, f.cells())
	}
	for _, line := range lines {
		c.fit(line)
	}
	for _, line := range lines {
		if err := c.print(line); err != nil {
			return err
		}
	}
	return nil
}

// columns prints lines of cells, each column as wide as its widest cell so far.
type columns struct {
	out    io.Writer
	widths []int
}

// fit makes the columns wide enough for a line.
func (c *columns) fit(line []string) {
	for i, cell := range line {
		if i == len(c.widths) {
			c.widths = append(c.widths, 0)
		}
		c.widths[i] = max(c.widths[i], len(cell))
	}
}

func (c *columns) print(line []string) error {
	c.fit(line)
	var b strings.Builder
	for i, cell := range line {
		fmt.Fprintf(&b, "%-*s  ", c.widths[i], cell)
	}
	_, err := fmt.Fprintln(c.out, strings.TrimRight(b.String(), " "))
	return err
}
