package kernel

import (
	"errors"
	"math"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nlproxy/nlproxy/dataplane/model"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// cramped returns a connection whose receive buffer stays as small as can be.
func cramped(t *testing.T) *Conn {
	var c *Conn
	err := labtest.Namespace(t).Do(func() (err error) {
		c, err = Dial(Options{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.nl.SetReadBuffer(1); err != nil {
		t.Fatal(err)
	}
	c.receiveBuffer = math.MaxInt
	return c
}

var lostChain = rules.ChainID{Table: rules.Table{Family: model.IPv4, Name: "nat"}, Name: "LOST"}

// times returns n operations that each put an empty rule into a chain.
func times(n int, chain string) (ops []rules.Op) {
	for i := range n {
		place := rules.Place{Chain: lostChain, Index: i}
		place.Chain.Name = chain
		ops = append(ops, rules.Op{Verb: rules.Append, Place: place})
	}
	return ops
}

func makeLostChain(t *testing.T, c *Conn) {
	t.Helper()
	place := rules.Place{Chain: lostChain, Index: -1}
	if _, err := c.Apply([]rules.Op{{Verb: rules.AddTable, Place: place}, {Verb: rules.AddChain, Place: place}}); err != nil {
		t.Fatal(err)
	}
}

func TestLostEchoesAreACommitWithUnknownHandles(t *testing.T) {
	c := cramped(t)
	makeLostChain(t, c)
	handles, err := c.Apply(times(echoes, lostChain.Name))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(handles, 0) {
		t.Fatal("nothing was lost")
	}
	chain, err := c.ListChain(lostChain)
	if err != nil {
		t.Fatal(err)
	}
	if len(chain.Rules) != echoes {
		t.Fatalf("%d rules, want %d", len(chain.Rules), echoes)
	}
	for i, h := range handles {
		if h != 0 && h != chain.Rules[i].Handle {
			t.Errorf("rule %d has handle %d, told as %d", i, chain.Rules[i].Handle, h)
		}
	}
}

func TestLostErrorsAreARefusalThatSaysSo(t *testing.T) {
	c := cramped(t)
	makeLostChain(t, c)
	_, err := c.Apply(times(100, "NOWHERE"))
	var refused *Refused
	if !errors.As(err, &refused) || !refused.Incomplete || len(refused.Objects) == 0 || len(refused.Objects) == 100 {
		t.Fatalf("%v, want an incomplete refusal", err)
	}
	if _, err := c.Generation(); err != nil {
		t.Errorf("the following call: %v", err)
	}
}

func TestOutcomeOfATransaction(t *testing.T) {
	ack := message{kind: unix.NLMSG_ERROR, sequence: 11, payload: make([]byte, 4)}
	failed := message{kind: unix.NLMSG_ERROR, sequence: 11, payload: []byte{0xff, 0xff, 0xff, 0xff}}
	whole := failed
	whole.sequence = 10
	stranger := ack
	stranger.sequence = 9
	echo := message{kind: nfTables(unix.NFT_MSG_NEWRULE), sequence: 11}
	var refused *Refused
	var uncertain *Uncertain
	tests := map[string]struct {
		replies []message
		lost    error
		want    any // pointer to the type of the error
		is      error
	}{
		"ack":                      {replies: []message{ack}},
		"echo, then lost":          {replies: []message{echo}, lost: unix.ENOBUFS},
		"error":                    {replies: []message{failed}, want: &refused, is: unix.Errno(1)},
		"error and lost":           {replies: []message{failed}, lost: unix.ENOBUFS, want: &refused},
		"ack of a failed commit":   {replies: []message{whole, ack}, is: unix.EPERM},
		"nothing":                  {want: &uncertain},
		"lost":                     {lost: unix.ENOBUFS, want: &uncertain, is: unix.ENOBUFS},
		"answer to something else": {replies: []message{stranger}, want: &uncertain},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tr := transaction{ops: times(1, "A"), first: 10, handles: make([]uint64, 1), lost: test.lost}
			for _, m := range test.replies {
				tr.read(m)
			}
			_, err := tr.outcome()
			switch {
			case test.want == nil && test.is == nil && err != nil:
				t.Errorf("error %v", err)
			case test.want != nil && !errors.As(err, test.want):
				t.Errorf("error %v, want %T", err, test.want)
			case test.is != nil && !errors.Is(err, test.is):
				t.Errorf("error %v, want %v", err, test.is)
			}
		})
	}
}

func FuzzRepliesOfAnyShape(f *testing.F) {
	ack := appendHeader(nil, header{kind: unix.NLMSG_ERROR, flags: unix.NLM_F_ACK_TLVS | unix.NLM_F_CAPPED, sequence: 11})
	f.Add(endMessage(append(ack, make([]byte, 40)...), 0))
	f.Add(encodeBatch(nil, times(2, "A"), 10, true))
	f.Fuzz(func(t *testing.T, b []byte) {
		tr := transaction{ops: times(3, "A"), first: 10, handles: make([]uint64, 3)}
		for m := range messages(b) {
			tr.read(m)
			readChain(m, model.IPv4)
			readRule(m)
		}
		if handles, err := tr.outcome(); (err == nil) != (len(handles) == 3) {
			t.Errorf("handles %v and error %v", handles, err)
		}
	})
}
