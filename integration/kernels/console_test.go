package kernels

import (
	"strings"
	"testing"
)

const console = `Booting from ROM...

=== begin good
=== RUN   TestA
--- PASS: TestA (0.00s)
    --- PASS: TestB (0.00s)
--- SKIP: TestC (0.00s)
PASS

=== end 0

=== begin bad
--- PASS: TestA (0.00s)
--- FAIL: TestB (0.00s)

=== end 1

=== begin cut
--- PASS: TestA (0.00s)
[   12.0] Kernel panic
`

func TestStepsThatDidNotEndWellAreWrong(t *testing.T) {
	for _, c := range []struct {
		step step
		want []string // the beginnings
	}{
		{step{name: "good", must: []string{"TestA"}}, nil},
		{step{name: "good", must: []string{"TestA", "TestB", "TestC"}}, []string{"TestB has not passed", "TestC has not passed"}},
		{step{name: "bad", must: []string{"TestA"}}, []string{"ended with code 1:"}},
		{step{name: "cut", must: []string{"TestA"}}, []string{"did not end:"}},
		{step{name: "never"}, []string{"did not end:"}},
	} {
		got := c.step.wrong(console)
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %q", c.step.name, got, c.want)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", c.step.name, got[i], c.want[i])
			}
		}
	}
}

func TestScriptSaysHowEachStepEnds(t *testing.T) {
	got := script([]step{{name: "demo", dir: "/x", command: "/bin/demo"}})
	want := "cd /x; echo; echo '=== begin demo'; /bin/demo; echo; echo \"=== end $?\"\npoweroff -f\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("%s\nwant at the end\n%s", got, want)
	}
}
