package emulate

import (
	"os"
	"testing"
	"time"

	"weft/units"
)

func privileged(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces")
	}
}

func TestPrivAllToAll(t *testing.T) {
	privileged(t)
	x := star(4, 20, 500)
	x.SampleQueues = 5 * units.Microsecond
	x.Stall = 5 * time.Second
	x.Processes.Stderr = os.Stderr
	o, err := Run(t.Context(), x)
	if o != nil {
		t.Logf("fidelity %+v, elapsed %v, transport %+v, fabric %+v", o.Fidelity, o.Elapsed, o.Transport, o.Fabric)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range o.Dones {
		if d.Wrong != 0 || d.Checked == 0 {
			t.Errorf("%+v", d)
		}
	}
}
