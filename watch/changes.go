package watch

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// Changes counts what a source was told. What did not come from an API server
// as an event, such as a list after a lost connection, counts where it differs
// from what was known.
type Changes struct {
	// Services and Endpoints count the changes of Services and EndpointSlices
	// since the start.
	Services, Endpoints int
	// ServicesPending is how many services, and EndpointsPending how many
	// changes of slices, no Snapshot shows yet.
	ServicesPending, EndpointsPending int
}

// Changes returns the counts until now.
func (s *Source) Changes() Changes { return s.facts.counted() }

func (f *facts) counted() Changes {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}

// noteTrigger notes when the change from old to now was asked for. What was
// asked for before the start says nothing of how long it took. The annotation
// of a slice that is gone tells of its last change, not of its end; what was
// noted for the service goes with it, as in kube-proxy 1.37
// (pkg/proxy/endpointschangetracker.go).
func (f *facts) noteTrigger(old, now *slice) {
	switch {
	case now == nil:
		if noted, ok := f.triggers[old.service]; ok {
			f.triggers[old.service] = slices.DeleteFunc(noted, func(t model.Trigger) bool { return t.Family == old.family })
		}
	case now.triggered.After(f.started):
		f.triggers[now.service] = append(f.triggers[now.service], model.Trigger{Service: now.service, Family: now.family, At: now.triggered})
	}
}

// readTrigger reads the annotation that says when the last change of a slice
// was asked for; zero if it does not.
func readTrigger(annotations map[string]string, f *findings) time.Time {
	text, ok := annotations[corev1.EndpointsLastChangeTriggerTime]
	if !ok {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		f.add(fmt.Sprintf("metadata.annotations[%s]", corev1.EndpointsLastChangeTriggerTime), "%q is no time as RFC 3339 has it", text)
		return time.Time{}
	}
	return at
}
