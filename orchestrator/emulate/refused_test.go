package emulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/nodeimg/agent"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/results/record"
	"weft/results/stats"
	"weft/transport"
	"weft/units"
)

// namedCluster is a cluster whose nodes have names and nothing else.
type namedCluster struct{ runtime.Cluster }

// Exits returns a channel without exits.
func (namedCluster) Exits() <-chan runtime.Exit {
	c := make(chan runtime.Exit)
	close(c)
	return c
}

func (namedCluster) Node(i int) *runtime.Proc { return &runtime.Proc{Name: fmt.Sprintf("h%d", i)} }

// A host that floods is named, and what its own send queue loses is no reason for a higher
// dilation; what others lose is. A host whose kernel answers the flood is not named as a source of
// it.
func TestLossesOfAHostThatFloods(t *testing.T) {
	for _, c := range []struct {
		name   string
		unsent [3]int64
		report realtime.Report
		helps  bool
		says   []string
	}{
		{"a flood of packets", [3]int64{0, 0, 67618}, realtime.Report{Beside: []int64{0, 0, 9},
			Answers: []int64{10, 0, 0}}, false, []string{
			"67618 packets lost in send queues of h2, among packets that are not part of the workload, which",
			"9 packets of h2 crossed the network that are not part",
			"10 ICMP errors crossed the network in which h0 answered packets"}},
		{"a flood that goes nowhere", [3]int64{0, 0, 5}, realtime.Report{Refusals: []realtime.Refusals{{}, {},
			{NotRouted: 3}}}, false,
			[]string{"5 packets lost in send queues of h2, among"}},
		{"others lose as well", [3]int64{1, 2, 5}, realtime.Report{Beside: []int64{0, 0, 9}}, true,
			[]string{"3 packets lost in send queues of h0, h1, which", "5 packets lost in send queues of h2, among"}},
		{"no flood", [3]int64{0, 4, 0}, realtime.Report{Answers: []int64{0, 1, 0}}, true,
			[]string{"4 packets lost in send queues of h1, which"}},
	} {
		r := &run{session: &session{x: &Experiment{BaseRTT: 10 * units.Microsecond}, cluster: namedCluster{}}, outcome: newOutcome(3)}
		for i, n := range c.unsent {
			r.outcome.Results[i] = &agent.Results{Timer: stats.NewDist(), Reaction: stats.NewDist(), Unsent: n}
		}
		r.outcome.Report = &c.report
		r.judge()
		f := &r.outcome.Fidelity
		reasons := strings.Join(f.Reasons, "\n")
		if f.Verdict != record.Degraded || Helps(f) != c.helps || f.UnorderedDrops != c.unsent[0]+c.unsent[1]+c.unsent[2] {
			t.Errorf("%s: %+v", c.name, f)
		}
		for _, want := range c.says {
			if !strings.Contains(reasons, want) {
				t.Errorf("%s: the reasons are\n%s\nwant %s", c.name, reasons, want)
			}
		}
		if strings.Contains(reasons, "packets of h0") {
			t.Errorf("%s: h0 is named as a source:\n%s", c.name, reasons)
		}
	}
}

// Packets that hosts refused are listed by sender, up to the sum that the hosts report.
func TestRefusedPacketsNameTheirSender(t *testing.T) {
	r := &run{session: &session{x: &Experiment{BaseRTT: 10 * units.Microsecond}, cluster: namedCluster{}}, outcome: newOutcome(3)}
	for i := range r.outcome.Results {
		r.outcome.Results[i] = &agent.Results{Timer: stats.NewDist(), Reaction: stats.NewDist()}
	}
	many := func(unreadable int64) (n transport.Refusals) {
		n[transport.Unreadable] = unreadable
		return n
	}
	r.outcome.Results[0].Refused = many(7)
	r.outcome.Results[0].RefusedFrom = map[transport.HostID]transport.Refusals{2: many(5), 3: many(9), -1: many(9)}
	r.outcome.Results[1].Refused = many(4)
	r.outcome.Results[1].RefusedFrom = map[transport.HostID]transport.Refusals{2: many(1 << 40), 0: many(-3)}
	r.outcome.Report = &realtime.Report{}
	r.judge()
	refused, why := record.Refused{By: record.ByHost, Why: transport.Unreadable.String()}, r.outcome.Fidelity.Reasons
	want := []record.Refused{refused, refused, refused}
	want[0].Host, want[0].From, want[0].Packets = "h0", "h2", 5
	want[1].Host, want[1].Packets = "h0", 2
	want[2].Host, want[2].From, want[2].Packets = "h1", "h2", 4
	if !slices.Equal(r.outcome.Refused, want) {
		t.Errorf("refused %+v, want %+v", r.outcome.Refused, want)
	}
	for _, line := range []string{"h2 sent 9 packets that crossed the network", "2 packets that h0 refused"} {
		if !slices.ContainsFunc(why, func(r string) bool { return strings.HasPrefix(r, line) }) {
			t.Errorf("no reason begins with %q: %q", line, why)
		}
	}
}

// A run that is not ok says when nodes had to open sockets for their packets.
func TestSocketsOpenedLateAreAReason(t *testing.T) {
	for opened, want := range map[int64]bool{0: false, 10: false, 11: true} {
		r := &run{session: &session{x: &Experiment{BaseRTT: 10 * units.Microsecond}, cluster: namedCluster{}}, outcome: newOutcome(3)}
		for i := range r.outcome.Results {
			r.outcome.Results[i] = &agent.Results{Timer: stats.NewDist(), Reaction: stats.NewDist()}
		}
		r.outcome.Results[1].Opened, r.outcome.Results[1].Unsent, r.outcome.Results[2].Counters.DataPackets = opened,
			1, 1000
		r.outcome.Report = &realtime.Report{}
		r.judge()
		f := r.outcome.Fidelity
		reason := strings.Contains(strings.Join(f.Reasons, "\n"), "1.1 sockets for every 100 data packets")
		if advice := Advice(&f, 1000, false); reason != want || strings.Contains(advice, "ulimit -n") != want ||
			strings.Contains(advice, "--dilation") == want {
			t.Errorf("%d opened: %q, %s", opened, f.Reasons, advice)
		}
	}
}
