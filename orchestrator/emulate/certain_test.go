package emulate

import (
	"runtime"
	"testing"
)

// What CheckDilation refuses on a machine that carries what any machine does is never certain.
func TestCertainDilationsAreNotRefused(t *testing.T) {
	slowest := Capacity{PacketsPerSecond: benchLight * float64(runtime.NumCPU())}
	for _, load := range []float64{1, 1e3, 1e5, 1e8} {
		for _, d := range []float64{1, 10, 1e4, 1e6} {
			if Certain(d, load) && CheckDilation(slowest, "m1", d, load, 0) != nil {
				t.Errorf("dilation %g of load %g", d, load)
			}
		}
	}
	if Certain(0, 1) || !Certain(1, 100) || Certain(1, 1e9) {
		t.Error("certain of a dilation that nothing guarantees, or not of one that is")
	}
}
