package xt

import (
	"unicode/utf8"

	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

// commentSize is XT_MAX_COMMENT_LEN in linux/netfilter/xt_comment.h, which
// includes the NUL at the end.
const commentSize = 256

// CommentInfo is struct xt_comment_info of linux/netfilter/xt_comment.h.
type CommentInfo struct {
	Text string
}

// Comment matches everything and carries a text. A text of more than 255 bytes
// is cut before the first character that does not fit as a whole.
func Comment(text string) []expr.Any { return match("comment", 0, CommentInfo{Text: text}) }

func (i CommentInfo) encode() []byte {
	b := payload(commentSize)
	copy(b, fitting(i.Text, commentSize-1))
	return b
}

// fitting returns the longest beginning of s, in whole characters, that has at
// most limit bytes.
func fitting(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && limit-end < utf8.UTFMax-1 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

func parseComment(_ model.Family, b []byte) (Info, error) {
	return CommentInfo{Text: text(b[:commentSize])}, nil
}
