package wire

import (
	"encoding/binary"
	"fmt"
	"testing"
)

func message(length uint32, payload string) []byte {
	b := binary.NativeEndian.AppendUint32(nil, length)
	return append(append(b, make([]byte, 12)...), payload...)
}

func attribute(length, kind uint16, value string) []byte {
	b := binary.NativeEndian.AppendUint16(nil, length)
	return append(binary.NativeEndian.AppendUint16(b, kind), value...)
}

func TestMessages(t *testing.T) {
	two := append(message(17, "a\x00\x00\x00"), message(18, "bc")...)
	for name, tc := range map[string]struct {
		in   []byte
		want string
	}{
		"none": {nil, ""}, "two": {two, "[a][bc]"}, "cut": {two[:len(two)-1], "[a]"},
		"too short a length": {message(15, "a"), ""}, "too long a length": {message(99, "a"), ""},
	} {
		got := ""
		for m := range Messages(tc.in) {
			got += fmt.Sprintf("[%s]", m[16:])
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestAttributes(t *testing.T) {
	two := append(attribute(5, 1, "a\x00\x00\x00"), attribute(6, 0x8002, "bc")...)
	for name, tc := range map[string]struct {
		in   []byte
		want string
	}{
		"none": {nil, ""}, "two": {two, "1:a 2:bc "}, "cut": {two[:len(two)-1], "1:a "},
		"too short a length": {attribute(3, 1, "a"), ""}, "too long a length": {attribute(99, 1, "a"), ""},
	} {
		got := ""
		for kind, value := range Attributes(tc.in) {
			got += fmt.Sprintf("%d:%s ", kind, value)
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
