package pace

import "time"

// bucket holds up to burst tokens, of which each run takes one, and earns one
// every min. It is kept as the moment at which it is full again.
type bucket struct {
	min   time.Duration
	burst int
	full  time.Time
}

// delay returns how long after now there is a token.
func (b *bucket) delay(now time.Time) time.Duration {
	return b.full.Sub(now) - time.Duration(b.burst-1)*b.min
}

// spend takes a token.
func (b *bucket) spend(now time.Time) {
	if b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(b.min)
}
