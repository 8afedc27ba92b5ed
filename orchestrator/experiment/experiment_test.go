package experiment

import (
	"reflect"
	"testing"

	"weft/units"
)

// What an experiment works out stands beside the lab, which stays as it was checked.
func TestALabIsNeverRewritten(t *testing.T) {
	const text = star + `
workload: [{collective: all-to-all, size: 1MB, repeat: 20}]
clocks: {sync: huygens, offset: ±10us, skew: ±10ppm}
measure: {from: 1ms}
faults:
  - {at: 0s, link: h0-switch0, delay: 2us}
  - {at: 1ms, link: h1-switch0, delay: 2us}
  - {at: 2ms, clock: h2, step: 1us}
`
	x := build(t, text)
	if !reflect.DeepEqual(x.Lab, parse(t, text)) {
		t.Errorf("the lab became %+v", x.Lab)
	}
	w := x.Clocks.Warmup
	if w == 0 || x.Clocks.Huygens.Window == 0 || x.Clocks.Huygens.Pairs == 0 || x.Plans[0].Clock.Huygens.Window != x.Clocks.Huygens.Window {
		t.Errorf("clocks are kept for %v before the workload, in windows of %v with %d pairs", w, x.Clocks.Huygens.Window, x.Clocks.Huygens.Pairs)
	}
	if f := x.Faults.All; f[0].At != 0 || f[1].At != units.Millisecond+w || x.Faults.Changes[1].At != units.Millisecond+w ||
		x.Plans[2].Clock.Clock.Steps[0].At != 2*units.Millisecond+w {
		t.Errorf("faults after a warm-up of %v: %+v", w, f)
	}
	if x.Measure.From != units.Millisecond+w || x.Measure.Clocks != x.Measure.From || x.Items[0].Start != w {
		t.Errorf("what counts begins at %v, and errors of clocks at %v, and the workload at %v", x.Measure.From, x.Measure.Clocks, x.Items[0].Start)
	}
}

// A network that stands is that of the lab's runs, without what runs do on it.
func TestADeployedNetworkIsThatOfARun(t *testing.T) {
	const text = star + "workload: [{collective: all-to-all, size: 1MB}]\nfaults: [{at: 1ms, link: h1-switch0, delay: 2us}]\n"
	run := build(t, text)
	stands, err := ForDeployment(parse(t, text), run.Subnet)
	if err != nil {
		t.Fatal(err)
	}
	if len(stands.Items) != 0 || len(stands.Conns) != 0 || len(stands.Faults.Changes) != 0 || !stands.Fabric.Disturbable {
		t.Errorf("%d items, %d connections and %d changes in a network that stands", len(stands.Items), len(stands.Conns), len(stands.Faults.Changes))
	}
	stands.Fabric.Disturbable = run.Fabric.Disturbable
	if !reflect.DeepEqual(stands.Fabric, run.Fabric) {
		t.Error("the fabric that stands is not that of a run")
	}
	for h := range run.Plans {
		if !reflect.DeepEqual(stands.Plans[h].Endpoint, run.Plans[h].Endpoint) {
			t.Errorf("host %d: %+v stands, %+v runs", h, stands.Plans[h].Endpoint, run.Plans[h].Endpoint)
		}
	}
}
