package integration

import (
	"bytes"
	"go/ast"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// readmeCommands names, for every command that the README tells its reader to
// type, what proves that it works: a test, as FILE:FUNCTION, or a script that
// runs it word for word.
var readmeCommands = map[string]string{
	"go test ./...": ".ci/run",
}

func TestEveryCommandOfTheReadmeIsTested(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, command := range commands(string(readme)) {
		shown[command] = true
		if _, ok := readmeCommands[command]; !ok {
			t.Errorf("no test for: %s", command)
		}
	}
	for command, proof := range readmeCommands {
		if !shown[command] {
			t.Errorf("not in the README any more: %s", command)
		}
		if !proves(t, proof, command) {
			t.Errorf("%s does not exist or does not run: %s", proof, command)
		}
	}
}

// commands returns the lines of the ```sh blocks of a text: one command each,
// without comments, prompts and line continuations.
func commands(text string) (found []string) {
	inside := false
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
		line = strings.Join(strings.Fields(strings.TrimPrefix(line, "$ ")), " ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```sh"
		case inside && line != "" && !strings.HasPrefix(line, "#"):
			found = append(found, line)
		}
	}
	return found
}

func TestCommandsOfAText(t *testing.T) {
	text := "a\n```sh\n# first\n$ one  x # why\n\ntwo \\\n  y\n```\nno\n```go\nnor\n```\n```sh\nthree\n```\n"
	want := "one x|two y|three"
	if got := strings.Join(commands(text), "|"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func proves(t *testing.T, proof, command string) bool {
	t.Helper()
	file, function, isTest := strings.Cut(proof, ":")
	if !isTest {
		script, err := os.ReadFile(filepath.Join(root, file))
		return err == nil && bytes.Contains(script, []byte(command))
	}
	_, pkgs := repository(t)
	for _, p := range pkgs {
		if test, ok := p.tests[file]; ok {
			return hasFunction(test, function)
		}
	}
	return false
}

func hasFunction(file *ast.File, name string) bool {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == name {
			return true
		}
	}
	return false
}
