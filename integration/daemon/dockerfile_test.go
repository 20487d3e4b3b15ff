package daemon

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStagesOfARecipe(t *testing.T) {
	got, err := stagesOf("# why\nFROM golang AS build\nRUN make  all\n\nFROM scratch\nCOPY --from=build /a /b\n")
	want := []stage{
		{"golang", "build", []step{{"RUN", "make  all"}}},
		{"scratch", "", []step{{"COPY", "--from=build /a /b"}}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(stage{}, step{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, wrong := range []string{"RUN make\n", "FROM golang\nRUN make \\\n  all\n"} {
		if _, err := stagesOf(wrong); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}

func TestWhatCannotBeDoneHereIsAnError(t *testing.T) {
	for _, recipe := range []string{
		"FROM golang AS build\n",
		"FROM golang AS build\nFROM alpine\n",
		"FROM golang AS build\nADD a b\nFROM scratch\n",
		"FROM golang AS build\nRUN exit 3\nFROM scratch\n",
		"FROM golang AS build\nFROM scratch\nUSER 1\n",
		"FROM golang AS build\nFROM scratch\nCOPY --from=other /out/ /\n",
	} {
		stages, err := stagesOf(recipe)
		if err != nil {
			t.Fatal(err)
		}
		if err := assemble(stages, t.TempDir(), t.TempDir()); err == nil {
			t.Errorf("%q is built", recipe)
		}
	}
}
