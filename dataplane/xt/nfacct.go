package xt

import (
	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

const (
	nfacctNameLen = 32 // NFACCT_NAME_MAX in linux/netfilter/nfnetlink_acct.h
	nfacctSize    = 40 // and a pointer of the kernel's
)

// NFAcctInfo is struct xt_nfacct_match_info of linux/netfilter/xt_nfacct.h, and
// struct xt_nfacct_match_info_v1, which differs on 32-bit machines only.
type NFAcctInfo struct {
	// Name is the accounting object's, at most 31 bytes.
	Name string
}

// NFAcct counts the packet in the named accounting object, which must exist, as
// `-m nfacct --nfacct-name NAME`. It is of revision 0, which every kernel has;
// iptables-nft writes revision 1 where the kernel has that, and reads both.
func NFAcct(name string) []expr.Any { return match("nfacct", 0, NFAcctInfo{Name: name}) }

func (i NFAcctInfo) encode() []byte {
	b := payload(nfacctSize)
	copy(b, fitting(i.Name, nfacctNameLen-1))
	return b
}

func parseNFAcct(_ model.Family, b []byte) (Info, error) {
	return NFAcctInfo{Name: text(b[:nfacctNameLen])}, nil
}
