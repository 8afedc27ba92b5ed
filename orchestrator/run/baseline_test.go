package run

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/units"
)

// transportKinds are the transports that labs can choose.
var transportKinds = []string{"pc4", "roce", "swift", "hpcc", "strack", "spray"}

// Every transport completes a workload on lossy and lossless networks, with the right data.
func TestEveryTransportRuns(t *testing.T) {
	for _, kind := range transportKinds {
		for _, queues := range []string{"{pfc: on}", "{shared: {total: 4MB}}", "{pfc: {xoff: 50KB}, ecn: {kmin: 20KB, kmax: 40KB}}"} {
			s, err := simulateLab(t, star+"queues: "+queues+"\ntransport: {kind: "+kind+"}\n"+
				"workload: [{collective: incast, flows: 3, size: 200KB}, {collective: all-reduce, size: 200KB, start: previous}]")
			if err != nil {
				t.Errorf("%s, %s: %v", kind, queues, err)
				continue
			}
			if !s.Verified || s.Flows.Unfinished != 0 || s.Network.Drops != 0 {
				t.Errorf("%s, %s: %+v", kind, queues, s)
			}
		}
	}
}

// With every transport a flow alone takes the ideal time, which includes telemetry. Swift and HPCC
// start with a window of one bandwidth-delay product, of which eta leaves a part unused.
func TestLoneFlowOfEveryTransport(t *testing.T) {
	for kind, limit := range map[string]float64{"pc4": 1.005, "roce": 1.005, "swift": 1.01, "hpcc": 1.06} {
		s := mustSimulate(t, star+"transport: {kind: "+kind+"}\nworkload: [{collective: incast, ranks: [h1], root: h0, size: 10MB}]")
		if got := s.Flows.Slowdown.Mean; got < 0.999 || got > limit {
			t.Errorf("%s: slowdown %.4f, want 1 to %v", kind, got, limit)
		}
	}
}

// Queue pairs are connections with ports of their own, in the plans of both hosts. A split message
// is one flow.
func TestQueuePairs(t *testing.T) {
	text := star + "transport: {kind: roce, roce: {qps: 4, split: messages}}\nworkload: [{collective: permute, size: 1MB, repeat: 2}]"
	x := build(t, text)
	if len(x.Conns) != 5*4 || len(x.Plans[0].Conns) != 2*4 {
		t.Errorf("%d connections, %d at h0", len(x.Conns), len(x.Plans[0].Conns))
	}
	ports := map[uint16]bool{}
	for _, c := range x.Conns {
		ports[c.SrcPort] = true
	}
	if len(ports) < 18 {
		t.Errorf("%d source ports of 20 connections", len(ports))
	}
	s, err := simulateLab(t, text)
	if err != nil || s.Flows.Count != 10 || !s.Verified {
		t.Errorf("%d flows, verified %t, %v", s.Flows.Count, s.Verified, err)
	}
}

// wantProblem fails unless building the lab fails with problems of the lab file that contain all
// parts of text.
func wantProblem(t *testing.T, text string, parts ...string) {
	t.Helper()
	_, err := experiment.Build(parse(t, text))
	var many lab.Problems
	var one lab.Problem
	if !errors.As(err, &many) && !errors.As(err, &one) {
		t.Errorf("got %v, want a problem of the lab: %q", err, parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("got  %v\nwant %q", err, p)
		}
	}
	if got := experiment.Check([]*lab.Lab{parse(t, text)}); len(many) > 0 && len(got) != len(many) {
		t.Errorf("Check found %v, Build %v", got, many)
	}
}

// A link that is down for a while delays its packets, and go-back-N recovers. A lossy link costs
// some time.
func TestFaults(t *testing.T) {
	run := func(faults string) (us float64, cut, lost int64) {
		t.Helper()
		s := mustSimulate(t, star+"transport: {kind: roce, roce: {rto_min: 100us}}\nfaults: "+faults+
			"\nworkload: [{collective: incast, ranks: [h1], root: h0, size: 5MB}]")
		if !s.Verified {
			t.Errorf("%s: %+v", faults, s)
		}
		return s.Flows.FCT.Mean, s.Network.Cut, s.Network.Lost
	}
	none, _, _ := run("off")
	if us, cut, _ := run("[{at: 100us, link: switch0-h1, down: 300us}]"); cut == 0 || us < none+300 || us > none+1000 {
		t.Errorf("a link down for 300 us: %.1f us instead of %.1f, %d packets cut", us, none, cut)
	}
	for _, down := range []string{"down: true", "down: "} {
		x := build(t, star+"faults: [{at: 100us, link: switch0-h1, "+down+"}]\nworkload: [{collective: incast, size: 1MB}]")
		if len(x.Faults.Changes) != 1 || *x.Faults.Changes[0].Up {
			t.Errorf("%s: %+v, want a link that never comes up again", down, x.Faults.Changes)
		}
	}
	if us, _, lost := run("[{at: 100us, link: h1-switch0, loss: 5%, for: 100us}]"); lost == 0 || us <= none {
		t.Errorf("a lossy link: %.1f us instead of %.1f, %d lost", us, none, lost)
	}
	if us, _, _ := run("[{at: 0s, link: h1-switch0, rate: 50Gbps}]"); us < 1.9*none || us > 2.1*none {
		t.Errorf("a link at half its rate: %.1f us instead of %.1f", us, none)
	}
	if us, _, _ := run("[{at: 0s, link: h1-switch0, delay: 51us}]"); us < none+90 || us > none+110 {
		t.Errorf("a link 50 us longer: %.1f us instead of %.1f", us, none)
	}
}

// When the link of a spine fails, the traffic hashed onto it is lost until all switches know.
func TestReroute(t *testing.T) {
	text := strings.Replace(star, "star, hosts: 5", "leaf-spine, oversubscription: 1, leaves: 2, spines: 2, hosts_per_leaf: 4", 1) +
		"transport: {kind: roce, roce: {rto_min: 50us, tries: 20}}\nworkload: [{collective: permute, size: 1MB}]\n" +
		"faults: [{at: 10us, link: leaf1-spine0, down: true%s}]"
	s, err := simulateLab(t, fmt.Sprintf(text, ", reroute: 200us"))
	if err != nil || !s.Verified || s.Network.Cut == 0 || s.Network.Drops != 0 {
		t.Errorf("with a reroute: %v, %+v", err, s.Network)
	}
	if _, err := simulateLab(t, fmt.Sprintf(text, "")); err == nil {
		t.Error("a flow got through a spine that does not reach its leaf")
	}
}

// Rates are measured while all connections are open, and add up to the rate of the receiver's link.
func TestRatesAndQueueEvents(t *testing.T) {
	s := mustSimulate(t, star+"workload: [{collective: incast, ranks: 4, size: 1MB}]\n"+
		"measure: {rates: 10us, from: 50us, queue_events: switch0->h4}")
	r := s.Rates
	if r == nil || r.Conns != 4 || r.FromUS != 50 || r.TotalGbps < 90 || r.TotalGbps > 100 || r.Jain < 0.95 || r.Jain > 1 {
		t.Fatalf("rates %+v", r)
	}
	if r.MinGbps > r.MeanGbps || r.MeanGbps > r.MaxGbps || 4*r.MeanGbps != r.TotalGbps {
		t.Errorf("rates %+v", r)
	}
	q := s.Network.QueueEventDelay
	if q == nil || q.Max <= 0 || q.Max > float64(100*units.Gbps.TransmitTime(units.Bytes(s.Network.MaxQueue)))/float64(units.Microsecond) {
		t.Errorf("events %+v, longest queue %d bytes", q, s.Network.MaxQueue)
	}
}
