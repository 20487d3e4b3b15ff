package watch

import (
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The times that Options leaves open.
const (
	defaultNodeTimeout    = 30 * time.Second
	defaultPodCIDRTimeout = 5 * time.Minute
	defaultRescan         = time.Minute
)

// Options is what every source takes. The zero value is usable.
type Options struct {
	// NodeName is the name of the Node object that describes this node. An
	// API source without one watches no Node. A directory without one takes
	// the only Node there, or else the one with this host's name.
	NodeName string

	// NodeNameOrigin is where NodeName is from, and what to do if it is wrong.
	// The error that there is no such Node has it in parentheses.
	NodeNameOrigin string

	// NodeTimeout is for how long Ready waits for that Node to exist and have
	// an address, and PodCIDRTimeout for how much longer it waits for a pod
	// CIDR. 0 means 30 seconds and five minutes, as in kube-proxy
	// (pkg/proxy/node.go, Kubernetes 1.37).
	NodeTimeout, PodCIDRTimeout time.Duration

	// NeedPodCIDRs says that a Node is complete only with a pod CIDR. It is
	// always complete only with an address.
	NeedPodCIDRs bool

	// Rescan is how often a directory is read even if nothing seems to have
	// changed; 0 means every minute.
	Rescan time.Duration

	// Logger receives each Problem as a warning, and outages of the source;
	// nil for none.
	Logger *zap.Logger

	// Observer is called with each Problem, when it is logged; nil for none.
	// It must not call the Source.
	Observer func(Problem)
}

// Validate names the first field that cannot be used.
func (o Options) Validate() error {
	if o.NodeName != "" {
		if errs := validation.IsDNS1123Subdomain(o.NodeName); len(errs) > 0 {
			return fmt.Errorf("watch: NodeName %q: %s", o.NodeName, strings.Join(errs, "; "))
		}
	}
	if o.NodeTimeout < 0 {
		return fmt.Errorf("watch: NodeTimeout %v is negative", o.NodeTimeout)
	}
	if o.PodCIDRTimeout < 0 {
		return fmt.Errorf("watch: PodCIDRTimeout %v is negative", o.PodCIDRTimeout)
	}
	if o.Rescan < 0 {
		return fmt.Errorf("watch: Rescan %v is negative", o.Rescan)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.NodeTimeout == 0 {
		o.NodeTimeout = defaultNodeTimeout
	}
	if o.PodCIDRTimeout == 0 {
		o.PodCIDRTimeout = defaultPodCIDRTimeout
	}
	if o.Rescan == 0 {
		o.Rescan = defaultRescan
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}
