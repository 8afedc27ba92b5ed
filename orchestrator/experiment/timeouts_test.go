package experiment

import (
	"fmt"
	"slices"
	"testing"

	"weft/orchestrator/lab"
	"weft/transport"
	"weft/units"
)

// Every transport has the same least retransmission timeout unless its lab says otherwise: no
// comparison is decided by a default.
func TestTransportsTimeOutAlike(t *testing.T) {
	for network, want := range map[string][2]units.Time{ // between
		"queues: {buffer: 5bdp}\n":                    {units.Millisecond, units.Millisecond},
		"queues: {buffer: 16MB}\n":                    {1280 * units.Microsecond, 1400 * units.Microsecond},
		"queues: {shared: {total: 32MB}}\n":           {2560 * units.Microsecond, 2700 * units.Microsecond},
		"queues: {shared: {total: 32MB}, pfc: on}\n":  {2560 * units.Microsecond, 2700 * units.Microsecond},
		"queues: {shared: {total: 320MB}, pfc: on}\n": {25600 * units.Microsecond, 26 * units.Millisecond},
	} {
		var got []units.Time
		for _, kind := range transport.Kinds() {
			if transport.FactsOf(kind).Module {
				continue // a lab must name its file
			}
			x := build(t, star+network+"transport: {kind: "+kind+"}\nworkload: [{collective: incast, size: 1MB}]\n")
			for i := range x.Conns {
				if rto := x.Conns[i].RTOMin; !slices.Contains(got, rto) {
					got = append(got, rto)
				}
			}
		}
		if len(got) != 1 || got[0] < want[0] || got[0] > want[1] {
			t.Errorf("%s: timeouts of %v, want one from %v to %v", network, got, want[0], want[1])
		}
	}
}

// A lab may give any transport what others use, by name; one that is shorter than any connection
// has is refused.
func TestTimeoutsByName(t *testing.T) {
	for _, kind := range []string{"pc4", "roce", "swift", "hpcc", "strack", "ccm: {inner: swift}"} {
		section := func(value string) string {
			if kind[:3] == "ccm" {
				return fmt.Sprintf("transport: {kind: ccm, ccm: {inner: swift, swift: {rto_min: %s}}}\n", value)
			}
			return fmt.Sprintf("transport: {kind: %s, %s: {rto_min: %s}}\n", kind, kind, value)
		}
		for value, want := range map[string]units.Time{
			"strack": 100 * units.Microsecond, "htsim": 100 * units.Microsecond, "nccl": 4_294_967_296 * units.Nanosecond, "250us": 250 * units.Microsecond,
		} {
			x := build(t, star+section(value)+"workload: [{collective: incast, size: 1MB}]\n")
			if got := x.Conns[0].RTOMin; got != want {
				t.Errorf("%s, rto_min: %s: %v, want %v", kind, value, got, want)
			}
		}
		labs, err := lab.Parse("lab.yaml", []byte(star+section("10us")+"workload: [{collective: incast, size: 1MB}]\n"), lab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if problems := Check(labs); len(problems) != 1 || problems[0].Line == 0 {
			t.Errorf("%s, rto_min: 10us: %v, want a problem with a place", kind, problems)
		}
	}
	x := build(t, "weft: 1\nname: far\ntopology: {kind: star, hosts: 4, link: {delay: 20us}}\ntransport: {kind: strack, strack: {rto_min: strack}}\n"+
		"workload: [{collective: incast, size: 1MB}]\n")
	if got := x.Conns[0].RTOMin; got != 8*x.Conns[0].NetRTT || got < 640*units.Microsecond {
		t.Errorf("8 base RTTs of %v are %v", x.Conns[0].NetRTT, got)
	}
}
