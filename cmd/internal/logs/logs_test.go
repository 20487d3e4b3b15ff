package logs

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"k8s.io/klog/v2"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
)

// written is what Logs wrote.
type written struct{ out, err stream }

// stream is a buffer for several goroutines.
type stream struct {
	guard sync.Mutex
	text  bytes.Buffer
}

func (s *stream) Write(p []byte) (int, error) {
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.text.Write(p)
}

var clock = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`)

// take returns what was written since it was asked last, without times.
func take(s *stream) string {
	s.guard.Lock()
	defer s.guard.Unlock()
	defer s.text.Reset()
	return clock.ReplaceAllString(s.text.String(), "NOW")
}

func start(t *testing.T, l config.Logging) (*Logs, *written) {
	t.Helper()
	w := &written{}
	logs, err := New(Options{Logging: l, Stdout: &w.out, Stderr: &w.err})
	if err != nil {
		t.Fatal(err)
	}
	return logs, w
}

func TestFormats(t *testing.T) {
	for format, want := range map[string]string{
		"":     "NOW\tinfo\tdone\t{\"services\": 3, \"took\": \"1.5s\"}\n",
		"text": "NOW\tinfo\tdone\t{\"services\": 3, \"took\": \"1.5s\"}\n",
		"json": `{"level":"info","ts":"NOW","msg":"done","services":3,"took":"1.5s"}` + "\n",
	} {
		// That calls are looked up for vmodule does not show.
		for _, modules := range [][]config.VModule{nil, {{FilePattern: "x", Verbosity: 1}}} {
			logs, w := start(t, config.Logging{Format: format, VModule: modules})
			logs.Logger().Info("done", zap.Int("services", 3), zap.Duration("took", 1500*time.Millisecond))
			if got, out := take(&w.err), take(&w.out); got != want || out != "" {
				t.Errorf("%q: %q, and on standard output %q", format, got, out)
			}
		}
	}
	if _, err := New(Options{Logging: config.Logging{Format: "xml"}}); err == nil || err.Error() != `logging.format: "xml": must be text or json` {
		t.Error(err)
	}
}

// levels returns the levels of the entries in text of format json.
func levels(text string) string {
	var found []string
	for _, m := range regexp.MustCompile(`"level":"(\w+)"`).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return strings.Join(found, " ")
}

func logAll(l *zap.Logger) {
	l.Debug("m")
	l.Info("m")
	l.Warn("m")
	l.Error("m")
}

func TestVerbosity(t *testing.T) {
	logs, w := start(t, config.Logging{Format: "json"})
	for _, tt := range []struct{ verbosity, want string }{
		{"", "info warn error"},
		{"1", "debug info warn error"},
		{"0", "info warn error"},
		{"2147483647", "debug info warn error"},
	} {
		if tt.verbosity != "" {
			if err := logs.SetVerbosity(tt.verbosity); err != nil {
				t.Fatal(err)
			}
		}
		logAll(logs.Logger())
		if got := levels(take(&w.err)); got != tt.want {
			t.Errorf("at verbosity %q: %s", tt.verbosity, got)
		}
	}
	for _, text := range []string{"", "-1", "many", "2147483648"} {
		if err := logs.SetVerbosity(text); err == nil || !strings.Contains(err.Error(), `must be from 0 to 2147483647`) {
			t.Errorf("%q: %v", text, err)
		}
	}
	logAll(logs.Logger())
	if got := levels(take(&w.err)); got != "debug info warn error" {
		t.Errorf("after a wrong verbosity: %s", got)
	}
}

func TestVModuleRaisesTheVerbosityOfItsFiles(t *testing.T) {
	for _, tt := range []struct {
		general int
		modules []config.VModule
		want    string
	}{
		{0, []config.VModule{{FilePattern: "logs_test", Verbosity: 1}}, "debug info warn error"},
		{0, []config.VModule{{FilePattern: "logs_*", Verbosity: 1}}, "debug info warn error"},
		{0, []config.VModule{{FilePattern: "verbosity", Verbosity: 1}}, "info warn error"},
		{0, []config.VModule{{FilePattern: "logs_test.go", Verbosity: 1}}, "info warn error"},
		{0, []config.VModule{{FilePattern: "logs*", Verbosity: 0}, {FilePattern: "logs_test", Verbosity: 1}}, "info warn error"},
		{0, []config.VModule{{FilePattern: "[", Verbosity: 1}, {FilePattern: "logs_test", Verbosity: 1}}, "debug info warn error"},
		{1, []config.VModule{{FilePattern: "logs_test", Verbosity: 0}}, "debug info warn error"},
	} {
		logs, w := start(t, config.Logging{Format: "json", Verbosity: tt.general, VModule: tt.modules})
		logAll(logs.Logger().With(zap.Int("n", 1)))
		if got := levels(take(&w.err)); got != tt.want {
			t.Errorf("%d and %v: %s", tt.general, tt.modules, got)
		}
	}
}

func TestSplitStream(t *testing.T) {
	for _, modules := range [][]config.VModule{nil, {{FilePattern: "x", Verbosity: 1}}} {
		logs, w := start(t, config.Logging{Format: "json", SplitStream: true, VModule: modules})
		logAll(logs.Logger())
		if out, err := levels(take(&w.out)), levels(take(&w.err)); out != "info" || err != "warn error" {
			t.Errorf("to standard output: %s; to standard error: %s", out, err)
		}
		if err := logs.SetVerbosity("1"); err != nil {
			t.Fatal(err)
		}
		logAll(logs.Logger())
		if out, err := levels(take(&w.out)), levels(take(&w.err)); out != "debug info" || err != "warn error" {
			t.Errorf("at verbosity 1, to standard output: %s; to standard error: %s", out, err)
		}
	}
}

func TestBufferIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, w := start(t, config.Logging{Format: "json", SplitStream: true, InfoBufferSize: 1 << 10, FlushFrequency: time.Minute})
		logAll(logs.Logger())
		if out, err := take(&w.out), levels(take(&w.err)); out != "" || err != "warn error" {
			t.Errorf("at once, to standard output: %s; to standard error: %s", out, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if out := levels(take(&w.out)); out != "info" {
			t.Errorf("after the period: %s", out)
		}
		logAll(logs.Logger())
		if err := logs.Sync(); err != nil {
			t.Error(err)
		}
		if out := levels(take(&w.out)); out != "info" {
			t.Errorf("when asked: %s", out)
		}
		logAll(logs.Logger())
		if err := logs.Close(); err != nil { // and nothing runs in this bubble any more
			t.Error(err)
		}
		if out := levels(take(&w.out)); out != "info" {
			t.Errorf("when closed: %s", out)
		}
	})
}

func TestKlogIsCaptured(t *testing.T) {
	defer klog.CaptureState().Restore()
	logs, w := start(t, config.Logging{Format: "json", Verbosity: 2})
	if err := CaptureKlog().To(logs); err != nil {
		t.Fatal(err)
	}
	say := func() {
		klog.V(4).InfoS("four")
		klog.V(2).InfoS("two")
		klog.Infof("none of %s", "structure")
		klog.ErrorS(nil, "bad", "object", "o")
	}
	say()
	const all = `{"level":"debug","ts":"NOW","logger":"klog","msg":"two"}
{"level":"info","ts":"NOW","logger":"klog","msg":"none of structure"}
{"level":"error","ts":"NOW","logger":"klog","msg":"bad","object":"o"}
`
	if got := take(&w.err); got != all {
		t.Errorf("at verbosity 2:\n%s", got)
	}
	if err := logs.SetVerbosity("4"); err != nil {
		t.Fatal(err)
	}
	say()
	if got, want := take(&w.err), `{"level":"debug","ts":"NOW","logger":"klog","msg":"four"}`+"\n"+all; got != want {
		t.Errorf("at verbosity 4:\n%s", got)
	}
}

func TestKlogFollowsFromOneLogToTheNext(t *testing.T) {
	defer klog.CaptureState().Restore()
	first, w1 := start(t, config.Logging{Format: "json", Verbosity: 2})
	second, w2 := start(t, config.Logging{Format: "json"})
	k := CaptureKlog()
	klog.Info("lost") // as there is no log yet
	named := klog.Background().WithValues("kind", "Service")
	for _, step := range []struct {
		to         *Logs
		one, other *written
		want       string
	}{
		{first, w1, w2, "debug info"},
		{second, w2, w1, "info"},
	} {
		if err := k.To(step.to); err != nil {
			t.Fatal(err)
		}
		klog.V(2).Info("two")
		named.Info("listed")
		said := take(&step.one.err)
		if got := levels(said); got != step.want || !strings.Contains(said, `"logger":"klog"`) || !strings.Contains(said, `"kind":"Service"`) {
			t.Errorf("logged %s, want %s", said, step.want)
		}
		if got := take(&step.other.err); got != "" {
			t.Errorf("the other one has %s", got)
		}
	}
}

func TestVModuleCountsForKlogToo(t *testing.T) {
	defer klog.CaptureState().Restore()
	logs, w := start(t, config.Logging{Format: "text", VModule: []config.VModule{{FilePattern: "logs_test", Verbosity: 3}}})
	if err := CaptureKlog().To(logs); err != nil {
		t.Fatal(err)
	}
	klog.V(4).InfoS("four")
	klog.V(3).InfoS("three")
	if got := take(&w.err); got != "NOW\tdebug\tklog\tthree\n" {
		t.Errorf("%q", got)
	}
}

func TestVerbosityChangesWhileThereIsLogging(t *testing.T) {
	logs, w := start(t, config.Logging{Format: "json"})
	done := make(chan error)
	go func() { done <- logs.SetVerbosity("1") }()
	logAll(logs.Logger())
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimPrefix(levels(take(&w.err)), "debug "); got != "info warn error" {
		t.Error(got)
	}
}
