package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"

	"github.com/nlproxy/nlproxy/dataplane/wire"
)

const (
	// attempts is how often a list is tried while others change the ruleset.
	attempts = 100
	// together is how many chains are listed at one moment: few enough to be
	// done, which takes some milliseconds, between two changes on a host where
	// pods start one after the other. To list 20,000 chains takes a second.
	together = 64
)

// List returns the chains of tables with their rules in order. Tables that do
// not exist are absent. Each chain is as it was at one moment; all of them are
// if nobody has changed the ruleset meanwhile, of which Generation tells. The
// error wraps ErrInterrupted if not even a few chains could be listed between
// two changes.
func (c *Conn) List(tables []rules.Table) ([]rules.ListedChain, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	chains, err := c.list(tables)
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	return chains, nil
}

// Tables returns the tables of both families, as they were at one moment.
// ErrInterrupted as in List.
func (c *Conn) Tables() ([]rules.Table, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []rules.Table
	err := c.atOneMoment(func() (err error) {
		all, err = c.tables()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	return all, nil
}

func (c *Conn) tables() ([]rules.Table, error) {
	var all []rules.Table
	for _, family := range model.Families {
		h := header{kind: nfTables(unix.NFT_MSG_GETTABLE), flags: unix.NLM_F_DUMP, family: uint8(family)}
		err := c.query(h, nil, func(m message) {
			name := string(text(attribute(m.body(), unix.NFTA_TABLE_NAME)))
			all = append(all, rules.Table{Family: family, Name: name})
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ListChain returns one chain with its rules in order, as they were at one
// moment. If the chain or its table does not exist, errors.Is(err,
// fs.ErrNotExist). ErrInterrupted as in List.
func (c *Conn) ListChain(id rules.ChainID) (rules.ListedChain, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var chain rules.ListedChain
	err := c.atOneMoment(func() (err error) {
		chain, err = c.listChain(id)
		return err
	})
	if err != nil {
		return rules.ListedChain{}, fmt.Errorf("list chain %v: %w", id, err)
	}
	return chain, nil
}

// Generation returns the number that the kernel raises with every transaction
// that anyone commits in this network namespace (NFT_MSG_GETGEN).
func (c *Conn) Generation() (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.generation()
}

func (c *Conn) generation() (uint32, error) {
	var id uint32
	err := c.query(header{kind: nfTables(unix.NFT_MSG_GETGEN)}, nil, func(m message) {
		id = uint32(number(attribute(m.body(), unix.NFTA_GEN_ID)))
	})
	if err != nil {
		return 0, fmt.Errorf("get generation of the ruleset: %w", err)
	}
	return id, nil
}

// atOneMoment repeats list until the ruleset has not changed meanwhile. Each
// dump alone says so by NLM_F_DUMP_INTR, all of them together by the
// generation.
func (c *Conn) atOneMoment(list func() error) error {
	for range attempts {
		before, err := c.generation()
		if err != nil {
			return err
		}
		if err = list(); errors.Is(err, ErrInterrupted) {
			continue
		}
		after, changed := c.generation()
		if changed != nil {
			return changed
		}
		if after == before {
			return err
		}
	}
	return ErrInterrupted
}

func (c *Conn) list(tables []rules.Table) ([]rules.ListedChain, error) {
	var all []rules.ListedChain
	err := c.atOneMoment(func() (err error) {
		all, err = c.allChains(tables)
		return err
	})
	for group := range slices.Chunk(all, together) {
		if err == nil {
			err = c.listGroup(group)
		}
	}
	return all, err
}

// listGroup lists the rules of chains at one moment or, where that is never
// long enough, of each half at one.
func (c *Conn) listGroup(chains []rules.ListedChain) error {
	err := c.atOneMoment(func() error { return c.listRulesOf(chains) })
	if half := len(chains) / 2; half > 0 && errors.Is(err, ErrInterrupted) {
		return errors.Join(c.listGroup(chains[:half]), c.listGroup(chains[half:]))
	}
	return err
}

func (c *Conn) listRulesOf(chains []rules.ListedChain) error {
	for i := range chains {
		if err := c.listRules(&chains[i]); err != nil {
			return err
		}
	}
	return nil
}

// allChains lists the chains of tables without rules.
func (c *Conn) allChains(tables []rules.Table) ([]rules.ListedChain, error) {
	var all []rules.ListedChain
	for _, family := range model.Families {
		chains, err := c.chains(family, tables)
		if err != nil {
			return nil, err
		}
		all = append(all, chains...)
	}
	return all, nil
}

// chains lists a family's chains without rules, those of other tables left
// out. Kernels do not filter them by table.
func (c *Conn) chains(family model.Family, tables []rules.Table) ([]rules.ListedChain, error) {
	var chains []rules.ListedChain
	h := header{kind: nfTables(unix.NFT_MSG_GETCHAIN), flags: unix.NLM_F_DUMP, family: uint8(family)}
	err := c.query(h, nil, func(m message) {
		chain := readChain(m, family)
		if slices.Contains(tables, chain.ID.Table) {
			chains = append(chains, chain)
		}
	})
	return chains, err
}

func (c *Conn) listChain(id rules.ChainID) (rules.ListedChain, error) {
	var chain rules.ListedChain
	name := appendString(nil, unix.NFTA_CHAIN_TABLE, id.Table.Name)
	name = appendString(name, unix.NFTA_CHAIN_NAME, id.Name)
	h := header{kind: nfTables(unix.NFT_MSG_GETCHAIN), family: uint8(id.Table.Family)}
	err := c.query(h, name, func(m message) { chain = readChain(m, id.Table.Family) })
	if err != nil {
		return chain, err
	}
	return chain, c.listRules(&chain)
}

// listRules fills in a chain's rules.
//
// One dump for each chain is much quicker than one for a table: a dump comes
// in parts of 32 KiB, for each of which the kernel counts its way through from
// the start (__nf_tables_dump_rules in net/netfilter/nf_tables_api.c, 6.18).
// Measured on 6.18 with 160,000 rules in 10,000 chains: 0.7 s against 11 s.
func (c *Conn) listRules(chain *rules.ListedChain) error {
	name := appendString(nil, unix.NFTA_RULE_TABLE, chain.ID.Table.Name)
	name = appendString(name, unix.NFTA_RULE_CHAIN, chain.ID.Name)
	h := header{kind: nfTables(unix.NFT_MSG_GETRULE), flags: unix.NLM_F_DUMP, family: uint8(chain.ID.Table.Family)}
	chain.Rules = nil
	return c.query(h, name, func(m message) { chain.Rules = append(chain.Rules, readRule(m)) })
}

// nfDrop is NF_DROP of linux/netfilter.h, a base chain's policy.
const nfDrop = 0

// readChain reads an NFT_MSG_NEWCHAIN.
func readChain(m message, family model.Family) rules.ListedChain {
	var chain rules.ListedChain
	var hook rules.Hook
	chain.ID.Table.Family = family
	for kind, value := range wire.Attributes(m.body()) {
		switch kind {
		case unix.NFTA_CHAIN_TABLE:
			chain.ID.Table.Name = string(text(value))
		case unix.NFTA_CHAIN_NAME:
			chain.ID.Name = string(text(value))
		case unix.NFTA_CHAIN_TYPE:
			hook.Type = string(text(value))
		case unix.NFTA_CHAIN_HOOK:
			hook.Number = uint32(number(attribute(value, unix.NFTA_HOOK_HOOKNUM)))
			hook.Priority = int32(number(attribute(value, unix.NFTA_HOOK_PRIORITY)))
			chain.Hook = &hook
		case unix.NFTA_CHAIN_POLICY:
			chain.Drops = number(value) == nfDrop
		}
	}
	return chain
}

// readRule reads an NFT_MSG_NEWRULE.
func readRule(m message) (listed rules.Listed) {
	for kind, value := range wire.Attributes(m.body()) {
		switch kind {
		case unix.NFTA_RULE_HANDLE:
			listed.Handle = number(value)
		case unix.NFTA_RULE_EXPRESSIONS:
			listed.Exprs = bytes.Clone(value)
		}
	}
	return listed
}
