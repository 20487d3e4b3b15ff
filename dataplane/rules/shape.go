package rules

import "golang.org/x/sys/unix"

// meaning says what Canonical does with an attribute.
type meaning uint16

const (
	// plain attributes are copied.
	plain meaning = iota
	// register attributes hold the number of a register.
	register
	// dropped attributes are state, or serve only while a rule is made.
	dropped
	// repeated attributes default to the value of the type before theirs.
	repeated

	// value attributes hold NFTA_DATA_VALUE or NFTA_DATA_VERDICT.
	value
	// verdict attributes hold NFTA_VERDICT_CODE and so on.
	verdict
	// single attributes hold one expression.
	single
	// list attributes hold a list of expressions.
	list

	// flags, and with it up to 255 of the lowest bits: attributes that say
	// nothing if they are 0 without these bits, which others imply.
	flags meaning = 1 << 8
	// zero attributes default to 0.
	zero = flags
)

// shape tells the meaning of an expression's attributes by type.
type shape [12]meaning

func (s *shape) of(a attr) meaning {
	if s == nil || int(a.kind) >= len(s) {
		return plain
	}
	return s[a.kind]
}

// Types that golang.org/x/sys/unix does not have, of linux/netfilter/nf_tables.h.
const (
	nftaBitwiseOp         = 6
	nftaBitwiseData       = 7
	nftaDynsetExpressions = 10
	nftaLastSet           = 1
	nftaLastMsecs         = 2
)

// The bits of flags that kernels from 5.8 on set by themselves where a rule
// gives addresses or ports: NF_NAT_RANGE_MAP_IPS and
// NF_NAT_RANGE_PROTO_SPECIFIED (nft_nat_init in net/netfilter/nft_nat.c).
const impliedNAT = 1<<0 | 1<<1

// NFT_DYNSET_F_EXPR says that there are several expressions.
const impliedDynset = 1 << 1

var valueShape = shape{unix.NFTA_DATA_VERDICT: verdict}

// shapes holds the expressions whose attributes are not all plain. Each entry
// is from the expression's dump function in net/netfilter of Linux 4.19 and
// 6.18: what it lists that was not sent, and how it changes what was.
var shapes = map[string]*shape{
	"bitwise": {
		unix.NFTA_BITWISE_SREG: register,
		unix.NFTA_BITWISE_DREG: register,
		unix.NFTA_BITWISE_MASK: value,
		unix.NFTA_BITWISE_XOR:  value,
		nftaBitwiseOp:          zero, // NFT_BITWISE_MASK_XOR, listed since 5.6
		nftaBitwiseData:        value,
	},
	"byteorder": {unix.NFTA_BYTEORDER_SREG: register, unix.NFTA_BYTEORDER_DREG: register},
	"cmp":       {unix.NFTA_CMP_SREG: register, unix.NFTA_CMP_DATA: value},
	"counter": {
		unix.NFTA_COUNTER_BYTES:   dropped,
		unix.NFTA_COUNTER_PACKETS: dropped,
		unix.NFTA_COUNTER_PAD:     dropped,
	},
	"ct": {unix.NFTA_CT_DREG: register, unix.NFTA_CT_SREG: register},
	"dynset": {
		unix.NFTA_DYNSET_SET_ID:    dropped,
		unix.NFTA_DYNSET_SREG_KEY:  register,
		unix.NFTA_DYNSET_SREG_DATA: register,
		unix.NFTA_DYNSET_TIMEOUT:   zero,
		unix.NFTA_DYNSET_EXPR:      single,
		unix.NFTA_DYNSET_PAD:       dropped,
		unix.NFTA_DYNSET_FLAGS:     flags | impliedDynset,
		nftaDynsetExpressions:      list,
	},
	"fib": {unix.NFTA_FIB_DREG: register, unix.NFTA_FIB_FLAGS: zero},
	"hash": {
		unix.NFTA_HASH_SREG:   register,
		unix.NFTA_HASH_DREG:   register,
		unix.NFTA_HASH_OFFSET: zero,
		unix.NFTA_HASH_TYPE:   zero, // NFT_HASH_JENKINS
	},
	"immediate": {unix.NFTA_IMMEDIATE_DREG: register, unix.NFTA_IMMEDIATE_DATA: value},
	"last":      {nftaLastSet: dropped, nftaLastMsecs: dropped},
	"lookup": {
		unix.NFTA_LOOKUP_SREG:   register,
		unix.NFTA_LOOKUP_DREG:   register,
		unix.NFTA_LOOKUP_SET_ID: dropped,
		unix.NFTA_LOOKUP_FLAGS:  zero,
	},
	"masq": {
		unix.NFTA_MASQ_FLAGS:         flags | impliedNAT,
		unix.NFTA_MASQ_REG_PROTO_MIN: register,
		unix.NFTA_MASQ_REG_PROTO_MAX: repeated,
	},
	"meta": {unix.NFTA_META_DREG: register, unix.NFTA_META_SREG: register},
	"nat": {
		unix.NFTA_NAT_REG_ADDR_MIN:  register,
		unix.NFTA_NAT_REG_ADDR_MAX:  repeated,
		unix.NFTA_NAT_REG_PROTO_MIN: register,
		unix.NFTA_NAT_REG_PROTO_MAX: repeated,
		unix.NFTA_NAT_FLAGS:         flags | impliedNAT,
	},
	"numgen": {unix.NFTA_NG_DREG: register, unix.NFTA_NG_OFFSET: zero},
	"payload": {
		unix.NFTA_PAYLOAD_DREG:        register,
		unix.NFTA_PAYLOAD_SREG:        register,
		unix.NFTA_PAYLOAD_CSUM_TYPE:   zero,
		unix.NFTA_PAYLOAD_CSUM_OFFSET: zero,
		unix.NFTA_PAYLOAD_CSUM_FLAGS:  zero,
	},
	"quota": {unix.NFTA_QUOTA_PAD: dropped, unix.NFTA_QUOTA_CONSUMED: dropped},
	"range": {
		unix.NFTA_RANGE_SREG:      register,
		unix.NFTA_RANGE_FROM_DATA: value,
		unix.NFTA_RANGE_TO_DATA:   value,
	},
	"redir": {
		unix.NFTA_REDIR_REG_PROTO_MIN: register,
		unix.NFTA_REDIR_REG_PROTO_MAX: repeated,
		unix.NFTA_REDIR_FLAGS:         flags | impliedNAT,
	},
}
