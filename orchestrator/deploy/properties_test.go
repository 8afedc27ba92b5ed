package deploy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"weft/fabric"
	"weft/orchestrator/topology"
	"weft/realtime"
	"weft/units"
)

// shownLink returns the row of a link and its JSON.
func shownLink(t *testing.T, k LinkState) (row, text string) {
	t.Helper()
	var b strings.Builder
	if err := (&State{Links: []LinkState{k}}).Show(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, k.Name+" ") {
			row = line
		}
	}
	raw, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	return row, string(raw)
}

// testLink is a link of a lab that has every property.
var testLink = topology.Link{Name: "h0-s0", Link: fabric.Link{Rate: 100 * units.Gbps, Delay: units.Microsecond, Loss: 0.5, BitErrors: 0.5, Duplicate: 0.5, Reorder: 0.5, ReorderBy: units.Microsecond, Jitter: units.Microsecond}}

// portOf returns a port with the properties of l.
func portOf(l *fabric.Link) *realtime.PortState {
	return &realtime.PortState{Up: true, Link: *l}
}

// Whatever property of the network's links changes, the link is said to be changed, with the new
// value, by the table and by the JSON. What the lab says is no change.
func TestEveryPropertyOfALinkIsShown(t *testing.T) {
	t.Parallel()
	own := testLink.Link
	if k := linkState(&testLink, portOf(&own)); k.Changed || k.Changes != nil {
		t.Errorf("a link as the lab has it: changed, %v", k.Changes)
	}
	before, _ := shownLink(t, linkState(&testLink, portOf(&own)))
	fields := reflect.ValueOf(&own).Elem()
	for i := range fields.NumField() {
		v := fields.Field(i)
		t.Run(fields.Type().Field(i).Name, func(t *testing.T) {
			was := reflect.ValueOf(v.Interface())
			defer v.Set(was)
			if v.Kind() == reflect.Float64 {
				v.SetFloat(0.25)
			} else {
				v.SetInt(v.Int() * 3)
			}
			k := linkState(&testLink, portOf(&own))
			if !k.Changed || len(k.Changes) != 1 || !strings.HasSuffix(k.Changes[0], fmt.Sprintf("=%v", v.Interface())) {
				t.Fatalf("changed %v, %v; want one property of %v", k.Changed, k.Changes, v.Interface())
			}
			row, text := shownLink(t, k)
			if row == before || !strings.Contains(row, "(changed: "+k.Changes[0]+")") || !strings.Contains(text, k.Changes[0]) {
				t.Errorf("%s is not in %q or %s", k.Changes[0], row, text)
			}
		})
	}
	if n := fields.NumField(); n != len(properties) {
		t.Errorf("links have %d properties, %v are settings", n, Properties())
	}
}

// Each property that weft link can set is shown once it is set, and once it is set to nothing.
func TestSetPropertiesAreShown(t *testing.T) {
	t.Parallel()
	plain := topology.Link{Name: "h0-s0", Link: fabric.Link{Rate: 100 * units.Gbps, Delay: units.Microsecond, ReorderBy: units.Microsecond}}
	values := map[string]string{"rate": "10Gbps", "delay": "5us", "loss": "1%", "bit_errors": "1e-6", "duplicate": "2%",
		"reorder": "3%", "reorder_by": "7us", "jitter": "4us"}
	for _, name := range Properties() {
		set := name + "=" + values[name]
		if name == "reorder_by" {
			set += ",reorder=3%"
		}
		now, err := changed(plain.Link, plain.ReorderBy, set)
		if err != nil {
			t.Fatal(err)
		}
		row, _ := shownLink(t, linkState(&plain, portOf(&now)))
		shown := properties[slices.Index(Properties(), name)].of(&now)
		if want := fmt.Sprintf("%s=%v", name, shown); reflect.ValueOf(shown).IsZero() || !strings.Contains(row, want) {
			t.Errorf("set %s: %q lacks %s", set, row, want)
		}
	}
	now, err := changed(testLink.Link, 0, "bit_errors=0")
	if err != nil {
		t.Fatal(err)
	}
	if row, _ := shownLink(t, linkState(&testLink, portOf(&now))); !strings.Contains(row, "(changed: bit_errors=0)") {
		t.Error(row)
	}
}

// A changed link names settings that weft link reads, and that make it the lab's again, whatever
// was changed and whatever the lab has.
func TestChangedLinksAreRestored(t *testing.T) {
	t.Parallel()
	uneven := topology.Link{Name: "h0-s0", Link: fabric.Link{Rate: 99_999_999_999, Delay: 1_234_567, Loss: 1e-9, BitErrors: 1.0 / 3, Duplicate: 1e-7, Reorder: 0.123456789, ReorderBy: 7_654_321, Jitter: 1}}
	plain := topology.Link{Name: "h0-s0", Link: fabric.Link{Rate: 100 * units.Gbps, Delay: units.Microsecond, ReorderBy: units.Microsecond}}
	for _, l := range []*topology.Link{&plain, &uneven, &testLink} {
		for _, list := range []string{"rate=500Mbps,loss=5%", "delay=5us", "bit_errors=1e-6", "duplicate=2%", "jitter=4us",
			"reorder=3%", "reorder=4%,reorder_by=9us", "rate=1Gbps,delay=0s,loss=0,bit_errors=0,duplicate=0,reorder=0,jitter=0s"} {
			own := l.Link
			changed := applied(t, l, portOf(&own), list)
			k := linkState(l, changed)
			if len(k.Changes) == 0 || len(k.Changes) != len(k.Restore) {
				t.Errorf("set %s: changes %v, restored by %v", list, k.Changes, k.Restore)
				continue
			}
			restored := linkState(l, applied(t, l, changed, strings.Join(k.Restore, ",")))
			if restored.Changed {
				t.Errorf("set %s, and then %v: changed %v", list, k.Restore, restored.Changes)
			}
		}
	}
}

// applied returns port p of l after weft link set the properties in list.
func applied(t *testing.T, l *topology.Link, p *realtime.PortState, list string) *realtime.PortState {
	t.Helper()
	now, err := changed(p.Link, l.ReorderBy, list)
	if err != nil {
		t.Fatalf("set %s: %v", list, err)
	}
	return portOf(&now)
}
