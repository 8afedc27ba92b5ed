package fabric

import (
	"encoding/json"
	"testing"

	"weft/units"
)

// A change survives being sent to another process, and does what its parts say.
func TestChange(t *testing.T) {
	up := false
	text, err := json.Marshal([]Change{
		{Ports: []int{0}, Link: &Link{Rate: units.Gbps, Delay: us}},
		{Ports: []int{0}, Up: &up},
		{Ports: []int{0}, Link: &Link{Rate: 0}},
		{Ports: []int{0}, Link: &Link{Rate: units.Gbps, Loss: 2}},
		{Tables: []SwitchConfig{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []Change
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, funnel(1, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: units.MB}).route())
	if err := all[0].Make(0, w.net); err != nil || !w.net.Links().Up(0) {
		t.Fatal(err)
	}
	w.send(0, 1, 0, 1000, 1)
	w.run(units.Never)
	if at := w.arrivals[0].at; at != 1080*ns+8*us+us {
		t.Errorf("1000 bytes at 1 Gb/s arrived at %d", at)
	}
	if err := all[1].Make(10*us, w.net); err != nil || w.net.Links().Up(0) {
		t.Errorf("up %t, %v", w.net.Links().Up(0), err)
	}
	for _, c := range all[2:4] {
		if c.Make(20*us, w.net) == nil {
			t.Errorf("%+v was taken", c.Link)
		}
	}
}
