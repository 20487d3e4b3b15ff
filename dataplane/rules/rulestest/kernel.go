package rulestest

import (
	"encoding/binary"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// Load puts rules at the end of a chain, in one transaction, and makes the
// chain and its table where they are missing.
func Load(id rules.ChainID, list ...rules.Rule) error {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	batch := []netlink.Message{
		batchMessage(unix.NFNL_MSG_BATCH_BEGIN),
		message(id.Table.Family, unix.NFT_MSG_NEWTABLE, netlink.Create,
			text(unix.NFTA_TABLE_NAME, id.Table.Name)),
		message(id.Table.Family, unix.NFT_MSG_NEWCHAIN, netlink.Create,
			text(unix.NFTA_CHAIN_TABLE, id.Table.Name), text(unix.NFTA_CHAIN_NAME, id.Name)),
	}
	for _, r := range list {
		m, err := newRule(id, r)
		if err != nil {
			return err
		}
		batch = append(batch, m)
	}
	batch = append(batch, batchMessage(unix.NFNL_MSG_BATCH_END))
	if _, err := conn.SendMessages(batch); err != nil {
		return err
	}
	return acknowledged(conn, len(batch)-2)
}

// acknowledged reads n replies and returns the first error in them.
func acknowledged(conn *netlink.Conn, n int) error {
	for n > 0 {
		replies, err := conn.Receive()
		if err != nil {
			return err
		}
		n -= len(replies)
	}
	return nil
}

func newRule(id rules.ChainID, r rules.Rule) (netlink.Message, error) {
	exprs, err := rules.Encode(id.Table.Family, r.Exprs)
	if err != nil {
		return netlink.Message{}, err
	}
	attrs := []netlink.Attribute{
		text(unix.NFTA_RULE_TABLE, id.Table.Name),
		text(unix.NFTA_RULE_CHAIN, id.Name),
		{Type: unix.NFTA_RULE_EXPRESSIONS | unix.NLA_F_NESTED, Data: exprs},
	}
	if r.Proto != 0 {
		compat, err := netlink.MarshalAttributes([]netlink.Attribute{
			number(unix.NFTA_RULE_COMPAT_PROTO, uint32(r.Proto)), number(unix.NFTA_RULE_COMPAT_FLAGS, 0),
		})
		if err != nil {
			return netlink.Message{}, err
		}
		attrs = append(attrs, netlink.Attribute{Type: unix.NFTA_RULE_COMPAT | unix.NLA_F_NESTED, Data: compat})
	}
	return message(id.Table.Family, unix.NFT_MSG_NEWRULE, netlink.Create|netlink.Append, attrs...), nil
}

// List returns the chains of a table with their rules, in the kernel's order.
func List(table rules.Table) ([]rules.ListedChain, error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	dumped, err := conn.Execute(message(table.Family, unix.NFT_MSG_GETCHAIN, netlink.Dump))
	if err != nil {
		return nil, fmt.Errorf("list chains: %w", err)
	}
	var chains []rules.ListedChain
	place := map[string]int{}
	for _, m := range dumped {
		c, err := chain(table, m.Data[4:])
		if err != nil {
			return nil, err
		}
		if c.ID.Table == table {
			place[c.ID.Name] = len(chains)
			chains = append(chains, c)
		}
	}
	if dumped, err = conn.Execute(message(table.Family, unix.NFT_MSG_GETRULE, netlink.Dump,
		text(unix.NFTA_RULE_TABLE, table.Name))); err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	for _, m := range dumped {
		name, r, err := rule(m.Data[4:])
		if err != nil {
			return nil, err
		}
		i, ok := place[name]
		if !ok {
			return nil, fmt.Errorf("rule %d is in chain %s, which was not listed", r.Handle, name)
		}
		chains[i].Rules = append(chains[i].Rules, r)
	}
	return chains, nil
}

func chain(table rules.Table, b []byte) (rules.ListedChain, error) {
	c := rules.ListedChain{ID: rules.ChainID{Table: table}}
	var kind string
	d, err := decoder(b)
	for err == nil && d.Next() {
		switch d.Type() {
		case unix.NFTA_CHAIN_TABLE:
			c.ID.Table.Name = d.String()
		case unix.NFTA_CHAIN_NAME:
			c.ID.Name = d.String()
		case unix.NFTA_CHAIN_TYPE:
			kind = d.String()
		case unix.NFTA_CHAIN_POLICY:
			c.Drops = d.Uint32() == 0 // NF_DROP
		case unix.NFTA_CHAIN_HOOK:
			c.Hook = &rules.Hook{}
			d.Nested(func(d *netlink.AttributeDecoder) error { return hook(d, c.Hook) })
		}
	}
	if c.Hook != nil {
		c.Hook.Type = kind
	}
	if err == nil {
		err = d.Err()
	}
	return c, err
}

func hook(d *netlink.AttributeDecoder, h *rules.Hook) error {
	for d.Next() {
		switch d.Type() {
		case unix.NFTA_HOOK_HOOKNUM:
			h.Number = d.Uint32()
		case unix.NFTA_HOOK_PRIORITY:
			h.Priority = int32(d.Uint32())
		}
	}
	return nil
}

func rule(b []byte) (chain string, r rules.Listed, err error) {
	d, err := decoder(b)
	for err == nil && d.Next() {
		switch d.Type() {
		case unix.NFTA_RULE_CHAIN:
			chain = d.String()
		case unix.NFTA_RULE_HANDLE:
			r.Handle = d.Uint64()
		case unix.NFTA_RULE_EXPRESSIONS:
			r.Exprs = d.Bytes()
		}
	}
	if err == nil {
		err = d.Err()
	}
	return chain, r, err
}

func decoder(b []byte) (*netlink.AttributeDecoder, error) {
	d, err := netlink.NewAttributeDecoder(b)
	if err == nil {
		d.ByteOrder = binary.BigEndian
	}
	return d, err
}

func text(kind uint16, s string) netlink.Attribute {
	return netlink.Attribute{Type: kind, Data: append([]byte(s), 0)}
}

func number(kind uint16, v uint32) netlink.Attribute {
	return netlink.Attribute{Type: kind, Data: binary.BigEndian.AppendUint32(nil, v)}
}

// message makes a request to nf_tables that is acknowledged, or a dump.
func message(f model.Family, kind uint16, flags netlink.HeaderFlags, attrs ...netlink.Attribute) netlink.Message {
	body, err := netlink.MarshalAttributes(attrs)
	if err != nil {
		panic(err) // too long for netlink: a mistake in the test
	}
	flags |= netlink.Request
	if flags&netlink.Dump != netlink.Dump {
		flags |= netlink.Acknowledge
	}
	return netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | kind), Flags: flags},
		Data:   append([]byte{byte(f), unix.NFNETLINK_V0, 0, 0}, body...),
	}
}

func batchMessage(kind uint16) netlink.Message {
	return netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(kind), Flags: netlink.Request},
		Data:   []byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, unix.NFNL_SUBSYS_NFTABLES},
	}
}
