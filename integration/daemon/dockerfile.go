package daemon

import (
	"fmt"
	"strings"
)

// A stage is one of an image recipe's: what it begins from, its name, and its
// instructions after that.
type stage struct {
	from, name string
	steps      []step
}

// A step is an instruction and what comes after it on its line.
type step struct{ instruction, rest string }

// stagesOf reads an image recipe, each of whose instructions is on one line.
func stagesOf(recipe string) (all []stage, err error) {
	for line := range strings.Lines(recipe) {
		line = strings.TrimSpace(line)
		instruction, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasSuffix(line, `\`):
			return nil, fmt.Errorf("an instruction of more than one line: %s", line)
		case instruction == "FROM":
			from, name, _ := strings.Cut(rest, " AS ")
			all = append(all, stage{from: from, name: name})
		case len(all) == 0:
			return nil, fmt.Errorf("before the first stage: %s", line)
		default:
			last := &all[len(all)-1]
			last.steps = append(last.steps, step{instruction, rest})
		}
	}
	return all, nil
}
