package bench

import (
	"fmt"

	"weft/collectives/schedule"
	"weft/units"
)

// Factor returns the ratio of bus bandwidth to algorithm bandwidth for n ranks (nccl-tests,
// doc/PERFORMANCE.md and src/*.cu).
func Factor(collective string, n int) (float64, error) {
	if n < 1 {
		return 0, fmt.Errorf("bus bandwidth of %s over %d ranks", collective, n)
	}
	f, ok := schedule.BusFactor(collective, n)
	if !ok {
		return 0, fmt.Errorf("bus bandwidth of %q is not defined", collective)
	}
	return f, nil
}

// Size returns the size column of nccl-tests for a collective of n ranks with the given size in the
// lab file. They are equal, except for incast and ps, which nccl-tests does not have. There it is
// what the root receives or sends in total, (n−1)·size, so that the bandwidth is that of the root's
// link.
func Size(collective string, n int, size units.Bytes) units.Bytes {
	if schedule.Of(collective).RootApart {
		return units.Bytes(n-1) * size
	}
	return size
}

// Bandwidth returns algorithm and bus bandwidth of a collective of n ranks with the given size
// column in time t. Both are 0 if t is not positive.
func Bandwidth(collective string, n int, size units.Bytes, t units.Time) (alg, bus units.Bandwidth, err error) {
	f, err := Factor(collective, n)
	if err != nil {
		return 0, 0, err
	}
	alg = units.Rate(size, t)
	return alg, units.Bandwidth(float64(alg) * f), nil
}

// GBps returns b in gigabytes of 1e9 bytes per second, the unit of nccl-tests.
func GBps(b units.Bandwidth) float64 { return float64(b) / 8e9 }
