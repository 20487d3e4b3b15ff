package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/integration/lab"
)

const (
	// pageWidth is the most columns that a line has.
	pageWidth = 96
	// barWidth is the length of a bar for everything.
	barWidth = 40
)

// page is what the user reads. That it cannot be written is no error: nobody
// is there to read it.
type page struct{ w io.Writer }

func (p page) printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

func (p page) heading(text string) { p.printf("\n%s\n", text) }

// stage prints that part of the preparation is done.
func (p page) stage(name, what string, took time.Duration) {
	p.printf("  %-12s%-*s%10s\n", name, pageWidth-24, what, short(took))
}

// programmed prints what a synchronisation did, and what the kernel has now.
func (p page) programmed(r dataplane.Report, tables []kernelTable, excerpt []string) {
	p.heading("What was programmed")
	p.printf("  %d services, in %s of %d operations and %d KiB\n",
		r.Services, plural(r.Transactions, "transaction"), r.Operations, r.Bytes>>10)
	p.printf("  %s in all, of which the kernel took %s\n\n", short(r.Duration), short(r.Kernel))
	for _, t := range tables {
		p.printf("  %-12s%4d chains%6d rules\n", t.table, t.chains, t.rules)
	}
	p.printf("\n  One service, as iptables-save prints it:\n\n")
	for _, rule := range excerpt {
		for _, line := range folded(rule, pageWidth-4) {
			p.printf("    %s\n", line)
		}
	}
}

// step prints one step of the traffic and how it ended.
func (p page) step(s step, r result, wrong []string) {
	if r.skipped != "" {
		p.printf("  --  %-34s not tried: %s\n", s.flow(), r.skipped)
		return
	}
	p.printf("  %s  %-34s %s\n", mark(wrong), s.flow(), s.summary(r))
	if s.want.spreads() && r.tally.Answered() > 0 {
		p.shares(s.want, r.tally)
	}
	p.printf("        %s\n", s.reason(r))
	p.complaints(wrong)
}

func (s step) flow() string { return fmt.Sprintf("%-8s %-4s %s", s.from, s.network, s.to) }

// summary is what came of s, in one line.
func (s step) summary(r result) string {
	if answered := r.tally.Answered(); answered > 0 {
		text := fmt.Sprintf("%d connections in %s", answered, short(r.took))
		if s.want.spreads() {
			return fmt.Sprintf("%s, %.1f %% each expected", text, 100/float64(len(s.want.by)))
		}
		return text + ", all to " + strings.Join(slices.Sorted(maps.Keys(r.tally.By)), " and ")
	}
	first := r.tally.Others[0]
	if first.Kind == lab.TimedOut {
		return fmt.Sprintf("dropped: nothing came back in %s", short(r.took))
	}
	return fmt.Sprintf("%s after %s", first, short(r.took))
}

// reason is the address that servers saw, if any, and why all is as it is.
func (s step) reason(r result) string {
	if len(s.want.seen) == 0 || r.tally.Answered() == 0 {
		return s.why
	}
	return fmt.Sprintf("seen as %s: %s", strings.Join(sourcesOf(r.tally), " and "), s.why)
}

// shares prints how connections spread over servers.
func (p page) shares(w want, t lab.Tally) {
	for _, name := range union(w.by, t.By) {
		share := float64(t.By[name]) / float64(t.Answered())
		bar := strings.Repeat("█", int(math.Round(share*barWidth)))
		p.printf("        %-12s%5d  %5.1f %%  %s\n", name, t.By[name], share*100, bar)
	}
}

// union lists the expected servers and then all others that answered.
func union(expected []string, by map[string]int) []string {
	list := slices.Clone(expected)
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// change prints a live change and when it was in effect.
func (p page) change(c change, t transition) {
	p.printf("  %s  %-34s in effect %s after the file was replaced\n", mark(t.wrong), c.title, short(t.effect))
	p.printf("        the %d connections before %s, from one on they %s\n",
		t.before, c.before.verb(), c.after.verb())
	if r := t.report; r.Duration > 0 {
		p.printf("        synchronised in %s, %s in the kernel: %s; first, the directory\n",
			short(r.Duration), short(r.Kernel), plural(r.Operations, "operation"))
		p.printf("        had to be quiet, as editors write in several steps\n")
	}
	p.complaints(t.wrong)
}

// verb is what happens to connections, for a sentence.
func (w want) verb() string {
	if w.kind == lab.Answered {
		return "were answered by " + strings.Join(w.by, ", ")
	}
	return "were " + w.kind.String()
}

func (p page) complaints(wrong []string) {
	for _, w := range wrong {
		p.printf("        WRONG: %s\n", w)
	}
}

// verdict prints how it went altogether.
func (p page) verdict(v verdict, took time.Duration) {
	p.printf("\n")
	if v.skipped > 0 {
		p.printf("%s not tried.\n", plural(v.skipped, "step"))
	}
	if len(v.wrong) == 0 {
		p.printf("All %d steps went as they should, in %s.\n", v.steps, short(took))
		return
	}
	p.printf("WRONG: %d of %d steps did not go as they should, in %s:\n", len(v.wrong), v.steps, short(took))
	for _, w := range v.wrong {
		p.printf("  %s\n", w)
	}
}

func mark(wrong []string) string {
	if len(wrong) > 0 {
		return "NO"
	}
	return "ok"
}

// short writes a duration with three digits.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return digits(d.Seconds()) + " s"
	case d >= time.Millisecond:
		return digits(d.Seconds()*1e3) + " ms"
	}
	return fmt.Sprintf("%d µs", d.Microseconds())
}

// digits writes n, from 1, with three digits or as many as it has before the point.
func digits(n float64) string { return fmt.Sprintf("%.*f", max(0, 2-int(math.Log10(n))), n) }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// folded breaks a rule before options, so that no line is longer than width.
func folded(rule string, width int) (lines []string) {
	line := ""
	for i, option := range strings.Split(rule, " -") {
		if i > 0 {
			option = " -" + option
		}
		if len(line)+len(option) > width {
			lines = append(lines, line)
			line = "   "
		}
		line += option
	}
	return append(lines, line)
}
