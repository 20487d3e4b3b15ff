package zpages

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status is what /statusz tells.
type Status struct {
	// Started returns when the process was started. It is called at each
	// request, from any goroutine.
	Started func() (time.Time, error)
	// Go, Binary and Kubernetes are the versions of Go, of this program, and of
	// Kubernetes as far as its interfaces go (1.37); the last may be empty.
	Go, Binary, Kubernetes string
	// Paths are all that is served beside this page.
	Paths []string
}

type statusz struct {
	header
	StartTime        metav1.Time `json:"startTime"`
	UptimeSeconds    int64       `json:"uptimeSeconds"`
	GoVersion        string      `json:"goVersion"`
	BinaryVersion    string      `json:"binaryVersion"`
	EmulationVersion string      `json:"emulationVersion,omitempty"`
	Paths            []string    `json:"paths"`
}

// Statusz serves /statusz: since when this process runs, what was built, and
// where else to look.
func Statusz(s Status) http.Handler {
	return page{"Statusz", func(h header) (object, error) { return s.now(h) }}
}

func (s Status) now(h header) (statusz, error) {
	started, err := s.Started()
	if err != nil {
		return statusz{}, fmt.Errorf("start of the process: %w", err)
	}
	return statusz{
		header:           h,
		StartTime:        metav1.NewTime(started),
		UptimeSeconds:    int64(max(0, time.Since(started)) / time.Second),
		GoVersion:        s.Go,
		BinaryVersion:    s.Binary,
		EmulationVersion: s.Kubernetes,
		Paths:            folders(s.Paths),
	}, nil
}

// folders returns the first folder of each path, once, sorted.
func folders(paths []string) []string {
	var all []string
	for _, path := range paths {
		first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		all = append(all, "/"+first)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (s statusz) text() string {
	lines := []string{
		"",
		"Started: " + s.StartTime.Format(time.UnixDate),
		"Up: " + duration(s.UptimeSeconds),
		"Go version: " + s.GoVersion,
		"Binary version: " + s.BinaryVersion,
		"Emulation version: " + s.EmulationVersion,
		"Paths: " + strings.Join(s.Paths, " "),
		"",
	}
	return strings.Join(lines, "\n")
}

func duration(seconds int64) string {
	return fmt.Sprintf("%d hr %02d min %02d sec", seconds/3600, seconds/60%60, seconds%60)
}
