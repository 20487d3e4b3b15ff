package metrics

import (
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"

	"github.com/nlproxy/nlproxy/cmd/internal/zpages"
)

// Build says what was built, as /version shows it.
type Build struct {
	// Major and Minor are the Kubernetes release whose libraries are in it.
	Major string `json:"major"`
	Minor string `json:"minor"`
	// Version is that of nlproxy.
	Version   string `json:"gitVersion"`
	Commit    string `json:"gitCommit"`
	TreeState string `json:"gitTreeState"` // clean or dirty
	// Date is that of the commit, as RFC 3339 has it.
	Date      string `json:"buildDate"`
	GoVersion string `json:"goVersion"`
	Compiler  string `json:"compiler"`
	Platform  string `json:"platform"`

	kubernetes string
}

// withDefaults fills in what the binary says of itself.
func (b Build) withDefaults() Build {
	b.GoVersion, b.Compiler, b.Platform = runtime.Version(), runtime.Compiler, runtime.GOOS+"/"+runtime.GOARCH
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	fill(&b.Version, info.Main.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			fill(&b.Commit, s.Value)
		case "vcs.time":
			fill(&b.Date, s.Value)
		case "vcs.modified":
			fill(&b.TreeState, map[string]string{"true": "dirty", "false": "clean"}[s.Value])
		}
	}
	b.setKubernetes(info.Deps)
	return b
}

// setKubernetes reads the release from a library that comes with each: v0.37.2
// of it is of Kubernetes v1.37.2.
func (b *Build) setKubernetes(deps []*debug.Module) {
	for _, d := range deps {
		rest, ok := strings.CutPrefix(d.Version, "v0.")
		if d.Path != "k8s.io/client-go" || !ok {
			continue
		}
		minor, _, _ := strings.Cut(rest, ".")
		fill(&b.Major, "1")
		fill(&b.Minor, minor)
		b.kubernetes = "v1." + rest
	}
}

func fill(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// status is what /statusz tells, beside paths.
func (b Build) status(paths []string) zpages.Status {
	s := zpages.Status{Started: processStart, Go: b.GoVersion, Binary: b.Version, Paths: paths}
	if b.Major != "" {
		s.Kubernetes = b.Major + "." + b.Minor
	}
	return s
}

// processStart is what process_start_time_seconds tells.
func processStart() (time.Time, error) {
	self, err := procfs.Self()
	if err != nil {
		return time.Time{}, err
	}
	stat, err := self.Stat()
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := stat.StartTime()
	return time.Unix(int64(seconds), 0), err
}

// The second has the name and the labels that every component of Kubernetes
// has: git_version is the release whose libraries are in the binary, so that
// what compares it among a cluster's components keeps its sense.
var (
	buildDesc = prometheus.NewDesc("nlproxy_build_info", "1, labelled with what was built.",
		[]string{"version", "commit", "go_version"}, nil)
	kubernetesBuildDesc = prometheus.NewDesc("kubernetes_build_info", "1, labelled with the Kubernetes release whose libraries were built in, and how.",
		[]string{"major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version", "compiler", "platform"}, nil)
)

// Describe makes a Build a prometheus.Collector.
func (b Build) Describe(descs chan<- *prometheus.Desc) {
	descs <- buildDesc
	descs <- kubernetesBuildDesc
}

// Collect makes a Build a prometheus.Collector.
func (b Build) Collect(metrics chan<- prometheus.Metric) {
	metrics <- prometheus.MustNewConstMetric(buildDesc, prometheus.GaugeValue, 1, b.Version, b.Commit, b.GoVersion)
	metrics <- prometheus.MustNewConstMetric(kubernetesBuildDesc, prometheus.GaugeValue, 1,
		b.Major, b.Minor, b.kubernetes, b.Commit, b.TreeState, b.Date, b.GoVersion, b.Compiler, b.Platform)
}
