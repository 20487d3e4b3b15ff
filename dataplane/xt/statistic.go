package xt

import (
	"fmt"
	"math"
	"strconv"

	"github.com/google/nftables/expr"
	"github.com/nlproxy/nlproxy/dataplane/model"
)

// The layout of struct xt_statistic_info: mode, flags, a union of the random
// mode's probability and the nth mode's three numbers, and a pointer of the
// kernel's, aligned to 8 bytes.
const (
	statisticProbability = 4
	// statisticCount is the last number of the nth mode. iptables works it out
	// of the first two in the random mode too (libxt_statistic.c, 1.8.9), and
	// so leaves the probability in it.
	statisticCount = 12
	statisticSize  = 24
)

// statisticRandom is XT_STATISTIC_MODE_RANDOM.
const statisticRandom = 0

// StatisticInfo is struct xt_statistic_info of linux/netfilter/xt_statistic.h
// in its mode "random".
type StatisticInfo struct {
	// Probability is in units of 1/2³¹: 0x80000000 is always.
	Probability uint32
	// Invert is XT_STATISTIC_INVERT.
	Invert bool
}

// Statistic is true once in n packets, at random, for n of at least 1, as
// `-m statistic --mode random --probability P`, where P is 1/n in ten decimals.
func Statistic(n int) []expr.Any {
	return match("statistic", 0, StatisticInfo{Probability: probability(n)})
}

// probability rounds twice, because kube-proxy prints ten decimals and
// iptables (extensions/libxt_statistic.c, 1.8.9) reads those.
func probability(n int) uint32 {
	p, err := strconv.ParseFloat(strconv.FormatFloat(1/float64(max(n, 1)), 'f', 10, 64), 64)
	if err != nil {
		return math.MaxUint32 // not reached: ParseFloat reads what FormatFloat wrote
	}
	return uint32(math.RoundToEven(p * (1 << 31)))
}

func (i StatisticInfo) encode() []byte {
	b := payload(statisticSize)
	if i.Invert {
		putUint16(b[2:], 1)
	}
	putUint32(b[statisticProbability:], i.Probability)
	putUint32(b[statisticCount:], i.Probability)
	return b
}

func parseStatistic(_ model.Family, b []byte) (Info, error) {
	if mode := uint16At(b, 0); mode != statisticRandom {
		return nil, fmt.Errorf("%w: mode %d", ErrUnknown, mode)
	}
	return StatisticInfo{Probability: uint32At(b, statisticProbability), Invert: uint16At(b, 2)&1 != 0}, nil
}
