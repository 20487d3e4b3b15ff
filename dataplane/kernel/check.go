package kernel

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/rules"
)

// maxName is the longest name of a table or chain in bytes
// (NFT_NAME_MAXLEN in linux/netfilter/nf_tables.h, less the zero byte).
const maxName = 255

// check refuses what no message can say, which would otherwise be cut short
// and mean something else. It returns nil if there is nothing.
func check(ops []rules.Op) *Refused {
	var r Refused
	for i := range ops {
		if errno, detail := unsayable(&ops[i]); errno != 0 {
			r.Objects = append(r.Objects, Refusal{
				Place: ops[i].Place, Verb: ops[i].Verb, Errno: errno, Detail: detail, op: i,
			})
		}
	}
	if len(r.Objects) == 0 {
		return nil
	}
	return &r
}

func unsayable(op *rules.Op) (unix.Errno, string) {
	if int(op.Verb) >= len(encodings) {
		return unix.EINVAL, "no such verb"
	}
	if n := len(op.Exprs); n > maxExprs {
		return unix.EMSGSIZE, fmt.Sprintf("expressions of %d bytes, a rule holds at most %d", n, maxExprs)
	}
	names := []string{op.Place.Chain.Table.Name, op.Place.Chain.Name}
	if op.Hook != nil {
		names = append(names, op.Hook.Type)
	}
	for _, name := range names {
		if len(name) > maxName || strings.IndexByte(name, 0) >= 0 {
			return unix.ENAMETOOLONG, fmt.Sprintf("name %.40q is longer than %d bytes or holds a zero byte", name, maxName)
		}
	}
	return 0, ""
}
