package events

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/nlproxy/nlproxy/conntrack"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

// The reasons that kube-proxy 1.37 gives too (cmd/kube-proxy/app and
// pkg/proxy/healthcheck). Its others arrive nowhere, because they are recorded
// before it starts to send, or are about ipvs.
const (
	ReasonStarting                = "Starting"
	ReasonHealthServerFailed      = "FailedToStartProxierHealthcheck"
	ReasonMetricsServerFailed     = "FailedToStartMetricServer"
	ReasonServiceHealthPortFailed = "FailedToStartServiceHealthcheck"
)

// The reasons that are this program's alone.
const (
	ReasonTableFull            = "ConntrackNearlyFull"
	ReasonServiceNotProgrammed = "ServiceNotProgrammed"
)

// The actions: what was being done. The first two are kube-proxy's.
const (
	actionStart   = "StartKubeProxy"
	actionListen  = "Listen"
	actionTrack   = "TrackConnections"
	actionProgram = "ProgramService"
)

const (
	normal  = corev1.EventTypeNormal
	warning = corev1.EventTypeWarning
)

// Starting says that this program starts to serve the node.
func (r *Recorder) Starting() { r.Node(normal, ReasonStarting, actionStart, "") }

// HealthServerFailed says why /healthz is not served.
func (r *Recorder) HealthServerFailed(err error) {
	r.Node(warning, ReasonHealthServerFailed, actionStart, err.Error())
}

// MetricsServerFailed says why /metrics is not served.
func (r *Recorder) MetricsServerFailed(err error) {
	r.Node(warning, ReasonMetricsServerFailed, actionStart, err.Error())
}

// TableFull says that connection tracking is nearly full.
func (r *Recorder) TableFull(s conntrack.Stats) {
	r.Node(warning, ReasonTableFull, actionTrack, fmt.Sprintf(
		"Connection tracking is %.0f %% full: %d of %d connections. New ones fail once it is full; see net.netfilter.nf_conntrack_max.",
		100*s.Fill(), s.Entries, s.Limit))
}

// ServiceHealthPortFailed says why the health of a service is not served on
// its port.
func (r *Recorder) ServiceHealthPortFailed(service model.Name, port uint16, err error) {
	r.Service(service, warning, ReasonServiceHealthPortFailed, actionListen, r.onNode(
		fmt.Sprintf("health check of service %s cannot be served on port %d: %v", service, port, err)))
}

// ServiceAside says why the kernel refuses the rules of a service, and of that
// service alone.
func (r *Recorder) ServiceAside(service model.Name, err error) {
	r.Service(service, warning, ReasonServiceNotProgrammed, actionProgram, r.onNode(
		fmt.Sprintf("the rules of service %s are refused, and tried again later: %v", service, err)))
}

// onNode begins the note of an event about something that is on every node.
func (r *Recorder) onNode(note string) string {
	if r == nil {
		return ""
	}
	return "node " + r.node + ": " + note
}
