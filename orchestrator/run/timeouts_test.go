package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/host"
	"weft/orchestrator/lab"
	"weft/transport"
	"weft/units"
)

// Every transport has the same least retransmission timeout unless its lab says otherwise: no comparison is decided by a default.
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

// A lab may give any transport what others use, by name; one that is shorter than any connection has is refused.
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

// A run whose slowest messages wait for timeouts says so, with the timeout and the setting that it comes from; one that only has
// timeouts elsewhere, or none, does not.
func TestTimeoutsThatDecideTheTailAreTold(t *testing.T) {
	const cut = "workload: [{collective: incast, ranks: 2, size: 1MB}]\nfaults: [{at: 20us, link: h1-switch0, down: 30us}]\n"
	for _, c := range []struct{ transport, want string }{
		{"{kind: swift}", "1 timeout decides the p99 flow completion time, "},
		{"{kind: pc4, pc4: {rto_min: 3ms}}", "the least timeout is 3ms (pc4, transport.pc4.rto_min: 3ms)"},
	} {
		s, err := simulateIn(t, t.TempDir(), star+"transport: "+c.transport+"\n"+cut)
		if err != nil {
			t.Fatal(err)
		}
		told := slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, c.want) })
		if !told || s.Tail == nil || s.Tail.Timeouts < 1 || s.Tail.Messages < 1 || s.Tail.WaitedUS < 0.9*s.RTOMinUS || s.RTOMinUS < 1000 || s.RTOMinKey != "transport."+s.Transport+".rto_min" {
			t.Errorf("%s: %q, %+v, least timeout %v us", c.transport, s.Warnings, s.Tail, s.RTOMinUS)
		}
	}
	s, err := simulateIn(t, t.TempDir(), star+"transport: {kind: swift}\nworkload: [{collective: incast, ranks: 2, size: 1MB}]\n")
	if err != nil || s.Tail != nil || len(s.Warnings) > 0 {
		t.Errorf("without a loss: %v, %+v, %q", err, s.Tail, s.Warnings)
	}
}

// Messages that wait on one connection at once wait for the same timeouts, which count once.
func TestTimeoutsCountOnceHoweverManyMessagesWait(t *testing.T) {
	const ms = units.Millisecond
	o := &outcome{TimedOut: []transport.TimedOut{{Conn: 1, At: 3 * ms, Waited: 2 * ms}, {Conn: 0, At: ms, Waited: ms}, {Conn: 1, At: ms, Waited: ms}}}
	for i := range 39 {
		o.Flows = append(o.Flows, host.Flow{Conn: 1, Start: units.Time(i), Acked: 4 * ms})
	}
	o.Flows = append(o.Flows, host.Flow{Conn: 0, Acked: 4 * ms}, host.Flow{Conn: 0, Start: 2 * ms, Acked: 6 * ms})
	got := new(Experiment).tail(o, 1000)
	if got == nil || got.Timeouts != 3 || got.Messages != 40 || got.WaitedUS != 3000 {
		t.Errorf("%+v, want 3 timeouts that 40 messages wait for, at most 3 ms", got)
	}
}
