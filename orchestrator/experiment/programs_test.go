package experiment

import (
	"strings"
	"testing"

	"weft/units"
)

// The reason of a simulation offers an emulation only where there can be one.
func TestWhyLargeLabsAreSimulated(t *testing.T) {
	for hosts, want := range map[string]string{
		"128": "", "129": "129 hosts are more than the 128 that are emulated by default; --engine emu emulates them",
		"1025": "1025 hosts are more than the 1024 that can be emulated on one machine",
	} {
		x, err := Build(parse(t, strings.Replace(star, "hosts: 5", "hosts: "+hosts, 1)+"workload: [{collective: incast, ranks: 2, size: 1MB}]"))
		if err != nil {
			t.Fatal(err)
		}
		if why, err := x.SimulatedUnasked(); why != want || err != nil {
			t.Errorf("%s hosts: %q, %v; want %q", hosts, why, err, want)
		}
	}
}

// Programs have hosts, and need an emulation on the modelled fabric. They begin when clocks have
// synchronized.
func TestPrograms(t *testing.T) {
	x, err := Build(parse(t, star+"workload: [{program: [x], hosts: [h3, h1]}, {program: [y], hosts: 2, clock: real}]"))
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Programs) != 2 || x.Programs[0].On[0] != 3 || x.Programs[0].Names[1] != "h1" || len(x.Programs[1].On) != 2 || len(x.Items) != 0 {
		t.Errorf("%+v", x.Programs)
	}
	const line = 100e9 / 8 / (4096 + 56 + 46) // packets per second
	for h, d := range x.ProgramDemands() {
		if h == 2 || h == 4 {
			if d.Sent > 0 {
				t.Errorf("h%d has no program and sends %g packets/s", h, d.Sent)
			}
		} else if d.Sent != line || d.Received != line || len(d.To[0]) != 3 {
			t.Errorf("h%d: %+v, want %g packets/s", h, d, line)
		}
	}
	if _, err := x.SimulatedUnasked(); err != nil || !AsksForEmulation(x.Lab) {
		t.Errorf("%v", err)
	}
	if err := Simulable(x.Lab); err == nil || !strings.Contains(err.Error(), "workload.0.program: the simulator's hosts run no programs; --engine emu") {
		t.Errorf("%v", err)
	}
	// No engine runs a lab with programs and what only the simulator has: none is recommended.
	for _, set := range []string{"measure: {acks: true}", "measure: {rates: 10us}", "background: {load: 0.1}"} {
		l := parse(t, star+set+"\nworkload: [{program: [x]}]")
		for _, err := range []error{Simulable(l), onlySimulated(l)} {
			if err == nil || strings.Contains(err.Error(), "--engine") || !strings.Contains(err.Error(), "leave out one of them") {
				t.Errorf("%s: %v", set, err)
			}
		}
	}
	x, err = Build(parse(t, star+"clocks: {sync: huygens}\nworkload: [{program: [x], start: 1ms}]"))
	if err != nil || x.Clocks.Warmup != 7*units.Millisecond || x.Programs[0].Begin != 8*units.Millisecond {
		t.Fatalf("%+v, %v", x, err)
	}
	for text, want := range map[string]string{
		"queues: {ecn: {mark: ingress}}\nengine: {datapath: kernel, kind: emu}\nworkload: [{program: [x]}]": "engine.datapath: programs of the workload run on the modelled fabric alone; --datapath fabric",
	} {
		if _, err := Build(parse(t, star+text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
