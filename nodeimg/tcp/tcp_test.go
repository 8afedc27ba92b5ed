package tcp

import (
	"strings"
	"testing"

	"weft/units"
)

// A timeout of lab time becomes one of real time, in whole milliseconds, or an error if the kernel
// cannot have it. The rest stays as it is.
func TestReal(t *testing.T) {
	s := Settings{RTOMin: 2 * units.Microsecond, InitCwnd: 20, QuickAck: true, ECN: true, CongCtl: "cubic"}
	for dilation, want := range map[float64]string{
		1000: "rto_min 2ms initcwnd 20 quickack 1 features ecn congctl cubic", 1700: "rto_min 3ms initcwnd 20 quickack 1 features ecn congctl cubic",
		100: "engine.tcp.rto_min: 2us is 200µs of real time", 1e9: "engine.tcp.rto_min: 2us is 33m20s of real time",
	} {
		got, err := s.Real(dilation)
		text := got.String()
		if err != nil {
			text = err.Error()
		}
		if !strings.HasPrefix(text, want) {
			t.Errorf("at dilation %g: %q, want %q", dilation, text, want)
		}
	}
	if got, err := (Settings{}).Real(1000); err != nil || got != (Settings{}) || got.String() != "" {
		t.Errorf("without settings: %v, %v", got, err)
	}
}
