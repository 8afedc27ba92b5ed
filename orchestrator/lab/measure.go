package lab

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"weft/internal/clip"
	"weft/nodeimg/tcp"
	"weft/orchestrator/topology"
	"weft/params"
	"weft/results/record"
	"weft/units"
)

// Bounds of the measure, expect and engine sections.
const (
	minInterval = units.Nanosecond
	maxInterval = 10 * units.Second
	maxExpect   = 1000
	maxDilation = 1e9
)

// ViewAuto is the value of Measure.View with which the run chooses the interval of its frames.
const ViewAuto units.Time = -1

// Measure is the measure section.
type Measure struct {
	Queues units.Time // sampling interval of queue lengths; 0: off
	Rates  units.Time // sampling interval of the throughput of connections; 0: off
	From   units.Time // distributions and rates of the summary leave out what was before
	Events string     // port such as switch0->h0 whose queue is recorded event by event; "": none
	CWND   bool       // every change of a congestion window is recorded
	Acks   bool       // every acknowledgement is recorded
	View   units.Time // interval of the frames of weft view; 0: off, ViewAuto: chosen by the run
}

// Keys implements params.Section.
func (m *Measure) Keys() []params.Key {
	return []params.Key{
		params.New("queues", interval(&m.Queues), "Sampling interval of queue lengths.").Default("10us", "ours"),
		params.New("rates", interval(&m.Rates), "Sampling interval of throughput.").Default("off", "ours"),
		params.New("queue_events", port(&m.Events), "Port to record event by event.").Default("off", "ours"),
		params.New("cwnd", params.Flag(&m.CWND), "Record window changes.").Default("false", "ours"),
		params.New("acks", params.Flag(&m.Acks), "Record every acknowledgement.").
			Default("false", "ours"),
		params.New("view", params.Time(&m.View, minInterval, maxInterval).Or("off", 0).Or("auto", ViewAuto),
			"Interval of frames for `weft view`.").Default("auto", "ours"),
		params.New("from", params.Time(&m.From, 0, maxFor),
			"Delays, rates, clock errors start here.").
			Default("0s", "ours"),
	}
}

// measure reads the section.
func (d *decoder) measure(s *section) (m Measure) {
	s.read(&m)
	s.refuse("packets", "no longer a key; `weft run LAB --engine emu --capture HOST=FILE` writes the packets of a "+
		"run, and `weft capture` those of a deployed lab")
	s.close()
	return m
}

// chartsOf is the list of the report key.
func chartsOf(to *[]string) *params.Items {
	items := params.ItemsOf(to, len(record.Charts), func(chart *string) params.Key {
		return params.One(params.Word(chart, record.Charts...))
	}).AtLeast(1, "a list of charts such as [busbw]")
	items.Whole = true
	return items
}

// checkReport reports charts of the report key that the lab measures nothing for.
func (l *Lab) checkReport(file *keyReader, measured *section) {
	lacks := map[string]struct {
		off bool
		key string
	}{
		"queues": {l.Measure.Queues == 0, "queues"}, "rates": {l.Measure.Rates == 0, "rates"},
		"cwnd": {!l.Measure.CWND, "cwnd"}, "credit": {!l.Measure.CWND, "cwnd"}, "acks": {!l.Measure.Acks, "acks"},
	}
	for i, chart := range l.Report {
		if c := lacks[chart]; c.off {
			file.inner("report").key(strconv.Itoa(i)).field.idle(measured.look(c.key),
				"the lab does not record what the chart shows; set measure.%s", c.key)
		}
	}
}

// portText matches the name of a port: the switch that has the queue, and the node that the port
// leads to.
var portText = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*->[a-z0-9][a-z0-9-]*$`)

// port is the name of a port, or off.
func port(to *string) params.Value {
	return params.Custom(to, func(text string) (string, error) {
		if !portText.MatchString(text) {
			return "", fmt.Errorf("%q is not the name of a port; expected one such as switch0->h0, or off",
				clip.Text(text))
		}
		return text, nil
	}, func(v string) string { return v }, "the name of a port such as switch0->h0", func() params.Form {
		return params.Form{Patterns: []string{strings.Trim(portText.String(), "^$")}, Example: "switch0->h0"}
	}).Or("off", "")
}

// interval is the time between two samples, or off.
func interval(to *units.Time) params.Value {
	return params.Time(to, minInterval, maxInterval).Or("off", 0)
}

// expect reads the expectations and keeps them as text: package results/expect knows their
// language. Which of those with a condition apply is decided once all labs of the file are known.
func (d *decoder) expect(f field) []Expectation {
	var expect []Expectation
	for _, item := range f.items(maxExpect) {
		text, ok := read(item, "an expectation such as verified == true", func(text string) (string, error) {
			if strings.TrimSpace(text) == "" || strings.Contains(text, "\n") {
				return "", fmt.Errorf("%q is not one line of text; expected an expectation such as verified == true",
					clip.Text(text))
			}
			return text, nil
		}, func(v string) string { return v })
		if !ok {
			continue
		}
		line := text
		text, condition, _ := strings.Cut(line, " when ")
		condition = strings.TrimLeft(condition, " ")
		expect = append(expect, Expectation{Text: strings.TrimSpace(text), When: strings.TrimSpace(condition),
			WhenAt: len(line) - len(condition), Index: item.index,
			Line: item.at.line, Column: item.at.column, Flag: item.at.flag})
	}
	return expect
}

func parseNumber(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

// Engine is the engine section.
type Engine struct {
	Kind     string   // auto, sim, emu, both
	Runtime  string   // auto, namespace, docker
	Datapath string   // auto, fabric, kernel
	Dilation float64  // slowdown of emulation; 0: auto
	NIC      string   // socket, bypass: what the agents of emulated hosts send through
	Sockets  []string // names of hosts that send through sockets although NIC is bypass
	Machines int      // into how many parts the modelled fabric of an emulation is cut
	Memo     string   // auto, off: whether a simulation skips steps that it has executed before
	// Cut has the switches of each part, separated by blanks; none: it follows from the topology.
	Cut []string
	TCP tcp.Settings
}

// maxMachines bounds engine.machines. Ours.
const maxMachines = 64

// What may carry the packets of an emulation.
const (
	DatapathAuto   = "auto"   // weft run chooses; elsewhere the modelled fabric
	DatapathFabric = "fabric" // the modelled fabric
	DatapathKernel = "kernel" // the machine's own kernel
)

// OnKernel reports whether the lab asks for the datapath of the machine's kernel.
func (e *Engine) OnKernel() bool { return e.Datapath == DatapathKernel }

// On returns a copy of the lab with another datapath, whatever it asks for itself.
func (l *Lab) On(datapath string) *Lab {
	other := *l
	other.Engine.Datapath = datapath
	return &other
}

// bypass is the engine.nic that bypasses the kernel.
const bypass = "bypass"

// Bypasses reports whether the agents of emulated hosts use bypass NICs.
func (e *Engine) Bypasses() bool { return e.NIC == bypass }

// both is the engine.kind of a lab that runs in the simulator and emulated.
const both = "both"

// Both reports whether the lab runs in the simulator and emulated.
func (e *Engine) Both() bool { return e.Kind == both }

// Simulates reports whether the lab asks for the simulator, alone or beside an emulation.
func (e *Engine) Simulates() bool { return e.Kind == "sim" || e.Both() }

// Emulates reports whether the lab asks to be emulated, alone or beside a simulation.
func (e *Engine) Emulates() bool { return e.Kind == "emu" || e.Both() }

// Keys implements params.Section.
func (e *Engine) Keys() []params.Key {
	return []params.Key{
		params.New("kind", params.Word(&e.Kind, "auto", "sim", "emu", both),
			"auto: emulate if under 30 s, or simulating takes long.").
			Default("auto", "ours"),
		params.New("runtime", params.Word(&e.Runtime, "auto", "namespace", "docker"),
			"Nodes are processes in namespaces, or Docker containers.").
			Default("auto", "ours"),
		params.New("datapath", params.Word(&e.Datapath, DatapathAuto, DatapathFabric, DatapathKernel),
			"fabric: one process models all switches. kernel: Linux with tc. auto: kernel within 30 s.").
			Default(DatapathFabric, "ours"),
		params.New("dilation", params.Decimal(&e.Dilation, 1, maxDilation).Or("auto", 0),
			"Slowdown of emulation; auto: the least the machine can carry.").
			Default("auto", "ours"),
		params.New("nic", params.Word(&e.NIC, "socket", bypass),
			"How emulated hosts send: memory shared with the fabric, or sockets.").
			Default("socket", "ours"),
		params.List("sockets", params.ItemsOf(&e.Sockets, topology.MaxHosts, func(host *string) params.Key {
			return params.One(params.Text(host, "the name of a host, as h0"))
		}), "Hosts that send through sockets although nic is bypass: [h0, h3].").
			Only(func() (bool, string) { return e.Bypasses(), "is for nic: bypass; add that, or leave this out" }),
		params.New("machines", params.Integer(&e.Machines, 1, maxMachines),
			"Parts that the emulated fabric is cut into, each a process with its hosts.").
			Default("1", "ours"),
		params.New("memo", params.Word(&e.Memo, "auto", "off"),
			"auto: the simulator skips steps that began in the same state before; results are the same bytes.").
			Default("auto", "ours"),
		params.List("cut", params.ItemsOf(&e.Cut, maxMachines, func(part *string) params.Key {
			return params.One(params.Text(part, "the switches of a part, as in leaf0 spine0"))
		}), "Switches of each part: [leaf0 spine0, leaf1 spine1]; default: by pods."),
		params.Sub("tcp", func() params.Section { return &e.TCP }, "The kernel's TCP in emulated hosts.").
			Only(func() (bool, string) {
				return e.Kind != "sim", "is for the kernel's TCP, which the simulator does not have"
			}).
			OrNone(),
	}
}
