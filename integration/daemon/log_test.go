package daemon

import (
	"fmt"
	"testing"
)

func TestJournalReadsLinesHoweverTheyAreWritten(t *testing.T) {
	const text = `{"level":"info","msg":"synchronised","services":3,"planned":2,"full":true,"transactions":1,"operations":40}` + "\n" +
		"nlproxy: an error\n" + `{"level":"warn","msg":"web.yaml:2: ..."}` + "\n"
	for size := 1; size <= len(text); size++ {
		j := newJournal()
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			fmt.Fprint(j, rest[:n])
			rest = rest[n:]
		}
		if j.String() != text {
			t.Fatalf("written in pieces of %d bytes:\n%s", size, j)
		}
		report := j.all()[0]
		report.Line = ""
		want := Entry{Level: "info", Message: "synchronised", Services: 3, Planned: 2, Full: true, Transactions: 1, Operations: 40}
		if report != want {
			t.Errorf("got %+v, want %+v", report, want)
		}
		if problem := j.all()[2].Message; problem != "web.yaml:2: ..." {
			t.Errorf("problem %q", problem)
		}
	}
}

func TestJournalReturnsEachEntryOnce(t *testing.T) {
	j := newJournal()
	one := func(e Entry) bool { return e.Message == "one" }
	_, found, changed := j.next(one)
	if found {
		t.Error("found an entry before there is any")
	}
	fmt.Fprint(j, `{"msg":"another"}`+"\n"+`{"msg":"one"}`+"\n"+`{"msg":"another"}`+"\n")
	select {
	case <-changed:
	default:
		t.Error("no notice of new entries")
	}
	if _, found, _ := j.next(one); !found {
		t.Error("an entry is not found")
	}
	if _, found, _ := j.next(one); found {
		t.Error("an entry is found twice")
	}
	if e, found, _ := j.next(func(Entry) bool { return true }); !found || e.Message != "another" {
		t.Errorf("after it comes %+v", e)
	}
}
