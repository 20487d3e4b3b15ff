package kernel

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/rules"

	"github.com/nlproxy/nlproxy/dataplane/wire"
)

// encodings says for each verb which message it is, with which flags, and
// which attribute carries Op.Handle (nf_tables_newrule and nf_tables_delrule
// in net/netfilter/nf_tables_api.c, 4.19 to 6.18).
var encodings = [...]struct {
	message, flags, handle uint16
}{
	rules.AddTable:     {unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, 0},
	rules.AddChain:     {unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE, 0},
	rules.Prepend:      {unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE, 0},
	rules.Append:       {unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE | unix.NLM_F_APPEND, 0},
	rules.InsertBefore: {unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE, unix.NFTA_RULE_POSITION},
	rules.InsertAfter:  {unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE | unix.NLM_F_APPEND, unix.NFTA_RULE_POSITION},
	rules.Replace:      {unix.NFT_MSG_NEWRULE, unix.NLM_F_REPLACE, unix.NFTA_RULE_HANDLE},
	rules.Delete:       {unix.NFT_MSG_DELRULE, 0, unix.NFTA_RULE_HANDLE},
	rules.Flush:        {unix.NFT_MSG_DELRULE, 0, 0},
	rules.DeleteChain:  {unix.NFT_MSG_DELCHAIN, 0, 0},
	rules.DeleteTable:  {unix.NFT_MSG_DELTABLE, 0, 0},
}

// maxExprs is how many bytes of expressions fit into the attribute that nests
// them, whose length has 16 bits.
const maxExprs = 1<<16 - 1 - unix.NLA_HDRLEN

// encodeBatch appends ops as one transaction to b: the message of ops[i] has
// the sequence number first+1+i, the first message first. With echo, the
// kernel tells the handles of the rules that it makes. Only the last operation
// asks for an ack.
//
// The ack: nfnetlink_rcv_batch sends the acks of a batch when it is over, all
// before sendmsg returns, and if the commit itself fails, the first message's
// error along with them. So the last operation's ack, without any error beside
// it, says that all is committed. BATCH_BEGIN and BATCH_END carry acks only
// since 6.10, any other message always has (measured on 6.1 and 6.18).
//
// Measured on 6.18, 160,000 rules of 99 MB in all, 2 cores: encoding takes 0.10
// to 0.16 s, sendmsg 2.3 s, and Apply 1.1 times as long as sendmsg alone. The
// Conn of google/nftables at 1db35da82052, which asks for an echo of every rule
// and builds the batch three times over, takes 0.5 to 1.6 s to encode and 7 to
// 10 s to send; with 10,000 rules 0.4 s in all, against 0.17 s.
func encodeBatch(b []byte, ops []rules.Op, first uint32, echo bool) []byte {
	b = slices.Grow(b, batchSize(ops))
	b = appendMark(b, unix.NFNL_MSG_BATCH_BEGIN, first)
	for i := range ops {
		var flags uint16
		if echo && ops[i].Verb.MakesRule() {
			flags |= unix.NLM_F_ECHO
		}
		if i == len(ops)-1 {
			flags |= unix.NLM_F_ACK
		}
		b = appendOp(b, &ops[i], first+1+uint32(i), flags)
	}
	return appendMark(b, unix.NFNL_MSG_BATCH_END, first+1+uint32(len(ops)))
}

// appendMark appends the message that begins or ends a transaction.
func appendMark(b []byte, kind uint16, sequence uint32) []byte {
	start := len(b)
	h := header{kind: kind, sequence: sequence, family: unix.AF_UNSPEC, resource: unix.NFNL_SUBSYS_NFTABLES}
	return endMessage(appendHeader(b, h), start)
}

// appendOp appends the message for op. The expressions come last.
func appendOp(b []byte, op *rules.Op, sequence uint32, flags uint16) []byte {
	start := len(b)
	e := encodings[op.Verb]
	b = appendHeader(b, header{
		kind:     nfTables(e.message),
		flags:    e.flags | flags,
		sequence: sequence,
		family:   uint8(op.Place.Chain.Table.Family),
	})
	b = appendString(b, unix.NFTA_RULE_TABLE, op.Place.Chain.Table.Name) // 1 for tables and chains as well
	switch e.message {
	case unix.NFT_MSG_NEWCHAIN, unix.NFT_MSG_DELCHAIN:
		b = appendChain(b, op)
	case unix.NFT_MSG_NEWRULE, unix.NFT_MSG_DELRULE:
		b = appendRule(b, op, e.handle)
	}
	return endMessage(b, start)
}

// appendChain gives no policy: the kernel makes a chain that accepts, and a
// chain that is there already keeps what others have set (nf_tables_newchain
// and nf_tables_updchain, 6.18).
func appendChain(b []byte, op *rules.Op) []byte {
	b = appendString(b, unix.NFTA_CHAIN_NAME, op.Place.Chain.Name)
	if op.Hook == nil || op.Verb != rules.AddChain {
		return b
	}
	b = appendPair(b, unix.NFTA_CHAIN_HOOK, op.Hook.Number, uint32(op.Hook.Priority))
	return appendString(b, unix.NFTA_CHAIN_TYPE, op.Hook.Type)
}

func appendRule(b []byte, op *rules.Op, handle uint16) []byte {
	b = appendString(b, unix.NFTA_RULE_CHAIN, op.Place.Chain.Name)
	if handle != 0 {
		b = appendUint64(b, handle, op.Handle)
	}
	if !op.Verb.MakesRule() {
		return b
	}
	if op.Proto != 0 {
		b = appendPair(b, unix.NFTA_RULE_COMPAT, uint32(op.Proto), 0)
	}
	return appendAttribute(b, unix.NFTA_RULE_EXPRESSIONS|unix.NLA_F_NESTED, op.Exprs)
}

// batchSize returns what ops need as a transaction, in bytes, or a little more.
func batchSize(ops []rules.Op) int {
	n := 2 * nfHeader
	for i := range ops {
		n += opSize(&ops[i])
	}
	return n
}

func opSize(op *rules.Op) int {
	const rest = 96 // headers and numbers of a message
	n := rest + len(op.Place.Chain.Table.Name) + len(op.Place.Chain.Name) + wire.Align(len(op.Exprs))
	if op.Hook != nil {
		n += len(op.Hook.Type)
	}
	return n
}
