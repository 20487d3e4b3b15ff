package dataplane_test

import (
	"testing"

	"github.com/nlproxy/nlproxy/dataplane"
	"github.com/nlproxy/nlproxy/dataplane/kernel"
	"github.com/nlproxy/nlproxy/dataplane/rules"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"
)

// refusingAll is a kernel that refuses each operation of a service by itself.
func refusingAll(owner string) func([]rules.Op) error {
	return func(ops []rules.Op) error {
		var no kernel.Refused
		for _, op := range ops {
			if op.Place.Owner == owner {
				no.Objects = append(no.Objects, kernel.Refusal{Place: op.Place, Verb: op.Verb, Errno: unix.EINVAL})
			}
		}
		if len(no.Objects) == 0 {
			return nil
		}
		return &no
	}
}

func TestOfAServiceThatIsRefusedOneLineIsLogged(t *testing.T) {
	log, logged := observer.New(zap.ErrorLevel)
	r := newRig(t, dataplane.Options{Logger: zap.New(log)})
	r.kernel.fail = refusingAll("default/svc-1")
	r.set(everything(service(1, 3), service(2, 1)))
	if len(r.last.Aside) != 1 || logged.Len() != 1 {
		t.Errorf("set aside %v, %d lines, want one each", r.last.Aside, logged.Len())
	}
}
