package run

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"weft/host"
	"weft/orchestrator/experiment/experimenttest"
	"weft/orchestrator/lab"
	"weft/orchestrator/summary"
	"weft/results/expect"
	"weft/results/record"
	"weft/results/stats"
	"weft/transport"
	"weft/units"
)

// names returns every name that an expectation can use, with 0 for an index.
func names() (all []string) {
	for _, name := range expect.Names() {
		all = append(all, strings.NewReplacer(".N.", ".0.", "NAME", "time_us").Replace(name))
	}
	return all
}

// valued returns the names that have a value for a run. All others are missed, each with a reason.
func valued(t *testing.T, s *record.Summary) (with []string) {
	t.Helper()
	for _, name := range names() {
		e, err := expect.Parse(map[bool]string{true: "fidelity == ok", false: name + " == " + name}[name == "fidelity"])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := e.Eval(s, expect.Scope{})
		if got.Unmeasured != !got.OK || got.Unmeasured && !strings.HasPrefix(got.Note, name+": ") {
			t.Errorf("%s: %+v", name, got)
		}
		if got.OK {
			with = append(with, name)
		}
	}
	return with
}

// Names with a value in every run that sent packets, and in every run with messages.
const (
	always   = "dilation lab_time packets delivered "
	counted  = "ce_marks cut drops duplicated late lost max_queue path_switches paused pauses refused trims unreceived "
	messages = "base_rtt bytes credits data_packets flows reordered retransmits timeouts unfinished verified ranks " +
		"fct.mean fct.p50 fct.p99 fct.max fct_slowdown.mean fct_slowdown.p50 fct_slowdown.p99 fct_slowdown.max " +
		"rtt.mean rtt.p50 rtt.p99 rtt.max queue_delay.mean queue_delay.p50 queue_delay.p99 queue_delay.max " +
		"collective.0.algbw collective.0.busbw collective.0.bytes collective.0.checked collective.0.fastest " +
		"collective.0.ranks collective.0.time collective.0.time.max collective.0.wrong "
	apart = "clock_error.mean clock_error.p50 clock_error.p99 clock_error.max clock_error.p999 clock_error.rms " +
		"clock_reference.mean clock_reference.p50 clock_reference.p99 clock_reference.max " +
		"clock_stability.0.adev clock_stability.0.mdev clock_stability.0.mtie clock_stability.0.tau clock_stability.0.tdev " +
		"clock_stability.max clock_stability.mean "
	synchronized = "clock_share clock_steps clock_resets clock_refused "
	voting       = "clock_falsetickers clock_no_majority "
)

// A run that ends before its warm-up has no value for what leaves that out. Each miss and a warning
// name measure.from; all else has a value.
func TestRunThatEndsInItsWarmUp(t *testing.T) {
	run := func(from string) *record.Summary {
		s, err := simulateLab(t, "weft: 1\nname: x\ntopology: {kind: star, hosts: 4}\n"+
			"workload: [{collective: incast, ranks: 2, size: 1MB}]\nmeasure: {rates: 10us, queue_events: switch0->h0, from: "+from+"}\n")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := run("5ms")
	early, ended := valued(t, run("50us")), valued(t, s)
	for _, name := range early {
		if slices.Contains(ended, name) {
			continue
		}
		e, err := expect.Parse(name + " == " + name)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Eval(s, expect.Scope{}); got.Note != name+": not measured: the run ended before measure.from (5ms)" {
			t.Errorf("%+v", got)
		}
	}
	want := strings.Fields("drops_after flow_rate.max flow_rate.mean flow_rate.min goodput jain max_queue_after queue_delay.max " +
		"queue_delay.mean queue_delay.p50 queue_delay.p99 queue_event_delay.max queue_event_delay.mean queue_event_delay.p50 " +
		"queue_event_delay.p99 rtt.max rtt.mean rtt.p50 rtt.p99")
	left := slices.DeleteFunc(early, func(name string) bool { return slices.Contains(ended, name) })
	if slices.Sort(left); !slices.Equal(left, want) {
		t.Errorf("without a value:\n%v, want\n%v", left, want)
	}
	if !slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.HasPrefix(w, "measure.from: the run ended at ") }) {
		t.Errorf("warnings: %q", s.Warnings)
	}
}

// Every name an expectation can use, in every kind of run: only what was measured has a value.
func TestOnlyWhatWasMeasuredHasAValue(t *testing.T) {
	const head = "weft: 1\nname: x\ntopology: {kind: star, hosts: 4}\n"
	const work = "workload: [{collective: all-to-all, size: 100KB, repeat: 4}]\n"
	count := "metric.time_us.count "
	simulated := func(text string) func(*testing.T) *record.Summary {
		return func(t *testing.T) *record.Summary {
			s, err := simulateLab(t, head+text)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	// An emulated run that has only the network's counters. With -1 packets it has none, since the
	// fabric process died.
	// sampled says that it has samples of queues alone.
	emulated := func(text, datapath string, sampled bool, packets int64) func(*testing.T) *record.Summary {
		return func(t *testing.T) *record.Summary {
			x := experimenttest.Build(t, head+text)
			o := summary.NewOutcome()
			o.Fabric.MaxQueue = units.Bytes(max(packets, 0) / 9 * 1500)
			o.Fabric.Injected, o.Fabric.Delivered, o.Ended, o.Uncounted = max(packets, 0), max(packets, 0), 1000, packets < 0
			o.Sampled = sampled
			o.Fidelity = &record.Fidelity{Verdict: "ok", BaseRTTNS: 1000, LatenessP99NS: float64(o.Fabric.Injected)}
			s := &record.Summary{Engine: "emu", Datapath: datapath, Dilation: 1, Transport: x.Lab.Sends()}
			summary.Summarize(x, o, s, func() bool { return false })
			return s
		}
	}
	const programs = "workload: [{program: [/bin/true]}]\nengine: {kind: emu}\n"
	for _, c := range []struct {
		name   string
		run    func(*testing.T) *record.Summary
		valued string
	}{
		{"collective", simulated(work), always + counted + messages + count},
		{"memoized", simulated(work + "engine: {memo: auto}\n"), always + counted + messages + count},
		{"flows", simulated("workload: [{flows: [{from: h0, to: h1, size: 1KB}]}]\n"), always + counted + messages + count},
		{"unsynchronized", simulated(work + "clocks: {sync: none, offset: off}\n"),
			always + counted + messages + count + apart + "clock_converged"},
		{"clocks that seldom state bounds", simulated("clocks: {sync: ptp, for: 20ms}\n"), always + counted + count +
			apart + synchronized + "flows base_rtt clock_converged"},
		{"clocks alone", simulated("clocks: {sync: ptp, for: 60ms}\n"), always + counted + count + apart + synchronized +
			"flows base_rtt clock_converged clock_bound.mean clock_bound.p50 clock_bound.p99 clock_bound.max clock_coverage"},
		{"clocks of several servers", simulated("clocks: {sync: ptp, for: 60ms, ptp: {servers: 2}}\n"), always + counted +
			count + apart + synchronized + voting +
			"flows base_rtt clock_converged clock_bound.mean clock_bound.p50 clock_bound.p99 clock_bound.max clock_coverage"},
		{"clocks that were not corrected", simulated("clocks: {sync: ptp, for: 10ms}\n"), always + counted + count +
			apart + "flows base_rtt clock_share clock_refused"},
		{"programs", emulated(programs, "fabric", false, 9), always + counted + count + "fidelity "},
		{"a fabric that died", emulated(programs, "fabric", false, -1), "dilation lab_time " + count},
		{"silent programs", emulated(programs, "fabric", false, 0), always + count},
		{"programs over the kernel", emulated(programs+"measure: {queues: off}\n", "kernel", true, 9), always + count +
			"fidelity ce_marks drops lost path_switches paused pauses refused trims unreceived"},
		{"programs over the kernel with BPF", emulated(programs+"measure: {queues: off}\n", "kernel", false, 9), always + count +
			"fidelity ce_marks drops lost path_switches paused pauses refused trims unreceived max_queue"},
		{"programs over the kernel, sampled", emulated(programs+"measure: {queues: 10us}\n", "kernel", true, 9), always + count +
			"fidelity ce_marks drops lost path_switches paused pauses refused trims unreceived max_queue"},
		{"programs over the kernel whose samples found no packet",
			emulated(programs+"measure: {queues: 10us}\n", "kernel", true, 5), always + count +
				"fidelity ce_marks drops lost path_switches paused pauses refused trims unreceived"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := strings.Fields(c.valued)
			s := c.run(t)
			got := valued(t, s)
			if bound := s.LowerBound("network.max_queue_bytes") != ""; bound != (s.Datapath == "kernel" && !strings.HasSuffix(c.name, "BPF")) {
				t.Errorf("the largest queue is a lower bound: %v", bound)
			}
			for _, name := range names() {
				if has := slices.Contains(got, name); has != slices.Contains(want, name) {
					t.Errorf("%s has a value: %v", name, has)
				}
			}
		})
	}
}

// beside returns the summary of an emulation of a collective beside a program, if one is given,
// whose endpoints and network counted something of everything.
func beside(t *testing.T, program string) *record.Summary {
	t.Helper()
	x := experimenttest.Build(t, "weft: 1\nname: x\ntopology: {kind: star, hosts: 4}\nengine: {kind: emu}\n"+
		"workload: [{collective: all-to-all, size: 100KB}"+program+"]\n")
	o := summary.NewOutcome()
	o.Flows = []host.Flow{{Size: 1000, Start: 1, Acked: 9 * units.Microsecond}}
	o.RTT.Record(4 * units.Microsecond)
	delays := stats.NewDist()
	delays.Record(2 * units.Microsecond)
	addDelays(o, delays)
	o.Transport = transport.Counters{DataPackets: 9, Retransmits: 8, Timeouts: 7, Reordered: 6, Credits: 5}
	o.Fabric.Injected, o.Fabric.Delivered, o.Fabric.MaxQueue, o.Fabric.Dropped = 99, 90, 3000, 9
	s := &record.Summary{Engine: "emu", Datapath: "fabric", Dilation: 1, Transport: x.Lab.Sends()}
	summary.Summarize(x, o, s, func() bool { return false })
	return s
}

// Programs beside a collective send packets that nobody looks into. What is measured of the others'
// packets meets no upper bound; counts and maxima meet lower ones, and all else has no value. What
// is of messages, and what the network counts of all packets, is measured as without a program.
func TestPacketsBesideThoseOfPrograms(t *testing.T) {
	alone, mixed := beside(t, ""), beside(t, ", {program: [/bin/true]}")
	unit := map[string]string{"a time": "us", "a size": "B", "a rate": "Gbps"}
	parts := 0
	for _, name := range names() {
		n, _ := record.Named(name)
		v := n.Value(alone)
		if math.IsNaN(v) || name == "verified" { // true or false: no bounds
			continue
		}
		part := slices.ContainsFunc(record.PacketFields(), func(f string) bool {
			return n.Path == f || strings.HasPrefix(n.Path, f+".")
		})
		bound := fmt.Sprintf("%g%s", v, unit[expect.Kind(name)])
		quantile := slices.Contains([]string{"mean", "p50", "p99"}, name[strings.LastIndexByte(name, '.')+1:])
		for line, met := range map[string]bool{
			name + " <= " + bound: !part, name + " == " + bound: !part, name + " >= " + bound: !part || !quantile,
		} {
			e, err := expect.Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			if got := e.Eval(alone, expect.Scope{}); !got.OK {
				t.Errorf("alone, %s: %+v", line, got)
			}
			got := e.Eval(mixed, expect.Scope{})
			if got.OK != met || !met && (!got.Unmeasured || !strings.Contains(got.Note, "nobody looks into the packets of programs")) {
				t.Errorf("beside a program, %s: %+v", line, got)
			}
		}
		if part {
			parts++
		}
	}
	for _, name := range names() {
		told := false
		labs, err := lab.Parse("lab.yaml", []byte("weft: 1\nname: x\ntopology: {kind: star, hosts: 4}\nengine: {kind: emu}\n"+
			"workload: [{collective: all-to-all, size: 100KB}, {program: [/bin/true]}]\nexpect: ["+name+" == "+name+"]\n"),
			lab.Options{})
		if err == nil {
			told = slices.ContainsFunc(labs[0].Notes(), func(p lab.Problem) bool {
				return strings.Contains(p.Message, record.BesidePrograms)
			})
		}
		n, _ := record.Named(name)
		if lacks := strings.Contains(mixed.Lacks(n.Path), record.BesidePrograms); told != lacks {
			t.Errorf("%s has no value: %t, told before: %t", name, lacks, told)
		}
	}
	if parts != 5+2*4 {
		t.Errorf("%d names are of a part of the packets", parts)
	}
	if !slices.ContainsFunc(mixed.Notes, func(n string) bool { return strings.Contains(n, "of collectives and flows alone") }) {
		t.Errorf("no note says what is of a part: %q", mixed.Notes)
	}
}

// An expectation about what no run of a lab measures is warned of before the run, and no other: for
// each name, in labs that switch on what it needs and in those that do not.
func TestUnmeasurableExpectationsAreToldBefore(t *testing.T) {
	const flows = star + "workload: [{collective: permute, size: 1MB}, {collective: permute, size: 1MB}]\n"
	const clocked = "clocks: {sync: ptp, preset: server, for: 20ms}\n"
	const measured = "measure: {rates: 1us, acks: true, queue_events: switch0->h0, from: 1us}\n"
	// What a run may fail to measure although its lab asks for it.
	rare := []string{"fidelity", "metric.", "clock_coverage", "clock_bound.", "clock_converged", "clock_stability.",
		"clock_reference.", "acks.delay", "acks.mark", "queue_event_delay.", "plateau."}
	for _, text := range []string{flows, flows + measured, flows + clocked, flows + "transport: {kind: ccm}\n",
		flows + clocked + measured + "transport: {kind: ccm}\n"} {
		with := valued(t, mustSimulate(t, text))
		for _, name := range names() {
			line := fmt.Sprintf("%s == %[1]s", name)
			labs, err := lab.Parse("lab.yaml", fmt.Appendf(nil, "%sexpect: [%s]\n", text, line), lab.Options{})
			if err != nil || name == "fidelity" {
				continue // refused, or judged in emulations alone
			}
			told := slices.ContainsFunc(labs[0].Notes(), func(p lab.Problem) bool { return p.Path == "expect.0" })
			may := slices.ContainsFunc(rare, func(r string) bool { return strings.HasPrefix(name, r) })
			if has := slices.Contains(with, name); told && has || !told && !has && !may {
				t.Errorf("%s%s: told %t, has a value %t", text, name, told, has)
			}
		}
	}
}

// A run shorter than an interval of samples has no value for what they measure, and says why; one
// that is longer has.
func TestWithoutASampleThereIsNoValue(t *testing.T) {
	for _, c := range []struct{ name, key, short, long string }{
		{"jain", "measure.rates", "measure: {rates: 1ms}", "measure: {rates: 5us}"},
		{"goodput", "measure.rates", "measure: {from: 1us, rates: 1ms}", "measure: {from: 1us, rates: 5us}"},
		{"clock_error.max", "clocks.sample", "measure: {from: 1us}\nclocks: {sync: none, warmup: off, sample: 1s}",
			"measure: {from: 1us}\nclocks: {sync: none, warmup: off}"},
	} {
		e, err := expect.Parse(c.name + " >= 0 * " + c.name)
		if err != nil {
			t.Fatal(err)
		}
		const work = "workload: [{collective: incast, ranks: 2, size: 100KB}]\n"
		got := e.Eval(mustSimulate(t, star+work+c.short+"\n"), expect.Scope{})
		if got.OK || !strings.HasPrefix(got.Note, c.name+": not measured: no sample was taken") ||
			!strings.Contains(got.Note, c.key+" is 1") {
			t.Errorf("%s: %+v", c.short, got)
		}
		if got := e.Eval(mustSimulate(t, star+work+c.long+"\n"), expect.Scope{}); !got.OK {
			t.Errorf("%s: %+v", c.long, got)
		}
	}
}
