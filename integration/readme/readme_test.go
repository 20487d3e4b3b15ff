package readme

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nlproxy/nlproxy/integration/golden"
	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// patience is how long a command may take, a first build included.
const patience = 10 * time.Minute

// elsewhere are commands that are run word for word by a script.
var elsewhere = map[string]string{
	"go test ./...": ".ci/run",
}

// daemons are commands that do not end by themselves, with what they say when
// they have done their work.
var daemons = map[string]string{
	"sudo ./nlproxy --manifests": "synchronised",
}

func TestEveryCommandOfTheReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program anew")
	}
	repository := copied(t)
	readme, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	ns := golden.Namespace(t)
	all := commands(string(readme))
	if len(all) < 5 {
		t.Fatalf("the README has only %d commands", len(all))
	}
	for _, command := range all {
		t.Run(command, func(t *testing.T) { try(t, ns, repository, command) })
	}
	inTheRightOrder(t, all)
}

// inTheRightOrder: the two commands that do all the set-up come first.
func inTheRightOrder(t *testing.T, all []string) {
	t.Helper()
	if all[0] != "go run ./cmd/nlproxy demo" || all[1] != "go test ./..." {
		t.Errorf("the README begins with %q", all[:2])
	}
}

// copied is a copy of the repository, without its history.
func copied(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	for _, name := range []string{"cmd", "conntrack", "dataplane", "watch", "integration", ".ci", "go.mod", "go.sum", "README.md"} {
		copyTree(t, filepath.Join(root, name), filepath.Join(to, name))
	}
	return to
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if err == nil && info.IsDir() {
		err = os.CopyFS(to, os.DirFS(from))
	} else if err == nil {
		var content []byte
		if content, err = os.ReadFile(from); err == nil {
			err = os.WriteFile(to, content, info.Mode())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func try(t *testing.T, ns *lab.Namespace, dir, command string) {
	if script, ok := elsewhere[command]; ok {
		text, err := os.ReadFile(filepath.Join(dir, script))
		if err != nil || !bytes.Contains(text, []byte(command)) {
			t.Errorf("%s does not run it: %v", script, err)
		}
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// In the namespace everybody is root and needs no sudo.
	cmd := exec.CommandContext(ctx, "bash", "-c", strings.TrimPrefix(command, "sudo "))
	cmd.Dir = dir
	for beginning, sign := range daemons {
		if strings.HasPrefix(command, beginning) {
			serve(t, ns, cmd, sign)
			return
		}
	}
	var out []byte
	err := ns.Do(func() (err error) {
		out, err = cmd.CombinedOutput()
		return err
	})
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// serve starts a daemon, waits for its sign, and stops it. What it wrote stays
// in the kernel for the commands after it.
func serve(t *testing.T, ns *lab.Namespace, cmd *exec.Cmd, sign string) {
	t.Helper()
	watcher := &output{sign: []byte(sign), seen: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = watcher, watcher
	process, err := ns.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-watcher.seen:
	case <-process.Done():
		t.Fatalf("it ended: %v\n%s", process.Err(), watcher)
	}
	if err := process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := process.Err(); err != nil {
		t.Errorf("told to stop: %v\n%s", err, watcher)
	}
}

// output keeps what a program prints and tells when a word is in it.
type output struct {
	sign []byte
	seen chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
	told bool
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.text.Write(p)
	if !o.told && bytes.Contains(o.text.Bytes(), o.sign) {
		o.told = true
		close(o.seen)
	}
	return n, err
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
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
