package dataplane

import (
	"time"

	"go.uber.org/zap"
)

// intruder is whoever changes rules of ours. It is warned of at once, and then
// every ten minutes for as long as it goes on.
type intruder struct {
	log    *zap.Logger
	all    int // times that it was noticed
	warned int // of them, when the last warning came
	last   time.Time
}

// warnEvery is the least time between two warnings.
const warnEvery = 10 * time.Minute

// noticed counts one change; fields say what was found.
func (i *intruder) noticed(fields ...zap.Field) {
	i.all++
	if now := time.Now(); i.warned == 0 || now.Sub(i.last) >= warnEvery {
		i.log.Warn("somebody else changed or removed rules of ours: a firewall that was reloaded, or another program that writes KUBE-* chains",
			append(fields, zap.Int("times", i.all-i.warned))...)
		i.warned, i.last = i.all, now
	}
}
