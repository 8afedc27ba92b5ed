package units

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTransmitTime(t *testing.T) {
	for _, c := range []struct {
		rate Bandwidth
		n    Bytes
		want Time
	}{
		{400 * Gbps, 64, 1280 * Picosecond}, // the shortest frame of the fastest link
		{100 * Gbps, 4096, 327_680 * Picosecond},
		{3 * BitPerSecond, 1, 2_666_666_666_666 * Picosecond}, // rounded down
		{20 * Mbps, 4096, 1638400 * Nanosecond},               // PC4, 5000 to 1: one packet every 1.638 ms
		{Gbps, 1000 * GB, 8000 * Second},                      // 8e24 needs more than 64 bits
	} {
		if got := c.rate.TransmitTime(c.n); got != c.want {
			t.Errorf("%v at %v takes %v, want %v", c.n, c.rate, got, c.want)
		}
	}
}

// A line is never a picosecond off, however many packets it carries.
func TestLineCarriesTheRemainder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := Bandwidth(rapid.Int64Range(1, int64(10*Tbps)).Draw(t, "rate"))
		line := NewLine(rate)
		var bytes, took int64
		for _, n := range rapid.SliceOfN(rapid.Int64Range(0, 9000), 1, 50).Draw(t, "packets") {
			bytes += n
			took += int64(line.Transmit(Bytes(n)))
		}
		want := new(big.Int).Mul(big.NewInt(bytes), big.NewInt(8*int64(Second)))
		want.Quo(want, big.NewInt(int64(line.Rate())))
		if want.Cmp(big.NewInt(took)) != 0 {
			t.Fatalf("%d bytes at %v took %d ps, want %v", bytes, rate, took, want)
		}
	})
}

func TestRateAndBytesInAreInverse(t *testing.T) {
	if got := (100 * Gbps).BytesIn(4 * Microsecond); got != 50_000 {
		t.Errorf("the BDP of 100 Gbps and 4 us is %d, want 50000", got)
	}
	if got := Rate(50_000, 4*Microsecond); got != 100*Gbps {
		t.Errorf("50000 bytes in 4 us are %v, want 100 Gbps", got)
	}
	if got := Rate(1, 0); got != 0 {
		t.Errorf("a rate over no time is %v, want 0", got)
	}
	if got := Rate(1<<60, 1); got != 1<<63-1 {
		t.Errorf("a rate beyond the type is %d, want the largest", got)
	}
}

func TestTransmitTimePanicsOnBrokenInvariants(t *testing.T) {
	for _, f := range []func(){func() { Bandwidth(0).TransmitTime(1) }, func() { Gbps.TransmitTime(-1) }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		}()
	}
}

func TestPresentation(t *testing.T) {
	d := 1500 * Nanosecond
	if d.Microseconds() != 1.5 || d.Nanoseconds() != 1500 || d.Seconds() != 1.5e-6 {
		t.Errorf("1.5 us is %v us, %v ns, %v s", d.Microseconds(), d.Nanoseconds(), d.Seconds())
	}
	if got := FromDuration(3 * time.Microsecond); got != 3*Microsecond || got.Duration() != 3*time.Microsecond {
		t.Errorf("3 us is %v and back %v", got, got.Duration())
	}
}
