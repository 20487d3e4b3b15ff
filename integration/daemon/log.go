package daemon

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// An Entry is one line of a daemon's log. Fields that the line does not have
// are zero.
type Entry struct {
	Level   string
	Message string `json:"msg"`

	// What a synchronisation did; see dataplane.Report.
	Services, Planned        int
	Full                     bool
	Transactions, Operations int

	// Kind is that of the objects that an API server does not give.
	Kind  string
	Error string

	// Line is all of it, as it was written.
	Line string `json:"-"`
}

// journal is the log of a process, written by that and read by tests.
type journal struct {
	mu      sync.Mutex
	rest    []byte // of a line that has not ended
	entries []Entry
	read    int           // how many of them were returned or passed over
	changed chan struct{} // closed and made anew with every entry
}

func newJournal() *journal { return &journal{changed: make(chan struct{})} }

// Write takes what the process writes. It never fails.
func (j *journal) Write(text []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rest = append(j.rest, text...)
	for {
		line, rest, whole := bytes.Cut(j.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		j.entries = append(j.entries, entryOf(line))
		j.rest = rest
		close(j.changed)
		j.changed = make(chan struct{})
	}
}

// entryOf reads a line. One that is not JSON, as that of an error with which
// the process ends, is an entry without fields.
func entryOf(line []byte) Entry {
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		e = Entry{}
	}
	e.Line = string(line)
	return e
}

// next returns the first entry that matches after the one that it returned
// last. Without any, changed is closed when there is another entry.
func (j *journal) next(match func(Entry) bool) (e Entry, found bool, changed <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.IndexFunc(j.entries[j.read:], match)
	if i < 0 {
		return Entry{}, false, j.changed
	}
	j.read += i + 1
	return j.entries[j.read-1], true, nil
}

// all returns the entries until now.
func (j *journal) all() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

// String returns the last lines.
func (j *journal) String() string {
	entries := j.all()
	var b strings.Builder
	for _, e := range entries[max(0, len(entries)-shown):] {
		b.WriteString(e.Line + "\n")
	}
	return b.String()
}

// shown is how many lines a failed test shows.
const shown = 100
