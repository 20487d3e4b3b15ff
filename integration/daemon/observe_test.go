package daemon

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func TestChildrenAreFound(t *testing.T) {
	for _, c := range []struct {
		name, script string
		want         bool
	}{
		{"none", "read line; echo $line; read line", false},
		{"a living one", "cat; :", true},
		{"one that has ended", "read line; cat /dev/null; echo $line; read line", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			pid := waiting(t, c.script)
			found, err := children(pid)
			if err != nil || (found != "") != c.want {
				t.Errorf("found %q, %v", found, err)
			}
		})
	}
}

// waiting is a shell that runs a script until t ends. It has come to where the
// script has printed a line that it was sent.
func waiting(t *testing.T, script string) (pid int) {
	t.Helper()
	labtest.Tools(t, "sh", "cat")
	in, send := io.Pipe()
	receive, out := io.Pipe()
	cmd := exec.Command("sh", "-c", script)
	cmd.Stdin, cmd.Stdout = in, out
	p, err := labtest.Namespace(t).Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		send.Close() // which ends the script, too
		<-p.Done()
	})
	fmt.Fprintln(send, "here")
	if line, err := bufio.NewReader(receive).ReadString('\n'); line != "here\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return p.PID()
}

func TestGenerationIsThatOfTheNamespace(t *testing.T) {
	a, b := labtest.Namespace(t), labtest.Namespace(t)
	before, other := Generation(t, a), Generation(t, b)
	labtest.Run(t, a, "", "nft", "add", "table", "ip", "made")
	if now := Generation(t, a); now != before+1 {
		t.Errorf("generation %d after one transaction, before %d", now, before)
	}
	if now := Generation(t, b); now != other {
		t.Errorf("generation %d of a namespace where nothing happened, before %d", now, other)
	}
}
