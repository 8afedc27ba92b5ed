package realtime

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"weft/fabric"
	"weft/internal/control"
	"weft/internal/fuzztest"
	"weft/internal/stalls"
	"weft/results/frames"
	"weft/results/stats"
)

// newTestCoordinator returns a coordinator of two parts of a network, to whose orchestrator it can
// send little.
func newTestCoordinator(t testing.TB) *coordinator {
	t.Helper()
	ours, theirs, err := control.Connected()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ours.Close()
		theirs.Close()
	})
	cfg := partFeatures(true)
	cfg.Part = &Part{Of: []int32{0, 0, 1, 0, 1}}
	return &coordinator{conn: ours, cfg: cfg, members: []Member{{Name: "m1"}, {Name: "m2"}}, parts: make([]partState, 2)}
}

// reportOf returns a report that a part of a network gives which carried nothing.
func reportOf(c *Config) *Report {
	return &Report{
		Ports: make([]fabric.PortCounters, len(c.Network.Ports)), Refusals: make([]Refusals, len(c.Hosts)),
		Beside: make([]int64, len(c.Hosts)), Answers: make([]int64, len(c.Hosts)),
		Delivery: stats.NewDist(), Departure: stats.NewDist(), QueueDelay: stats.NewDist(), Stalls: make([]Stalls, 1),
		Crossings: &Crossings{Lateness: stats.NewDist(), Slack: stats.NewDist()},
	}
}

// Answers with indices that the network does not have, or without what is read from them, end the
// run with an error: the process of a part may be on another machine.
func TestAnswersThatNoPartGives(t *testing.T) {
	first := newTestCoordinator(t)
	ports, hosts, nodes := len(first.cfg.Network.Ports), len(first.cfg.Hosts), len(first.cfg.Part.Of)
	report := func(change func(*Report)) *Report {
		r := reportOf(&first.cfg)
		change(r)
		return r
	}
	frame := func(all ...int32) []frames.Frame {
		f := frames.Frame{At: 5}
		for _, p := range all {
			f.Ports = append(f.Ports, frames.Port{Port: p})
		}
		return []frames.Frame{f}
	}
	for what, c := range map[string]struct {
		kind string
		body any
	}{
		"a port too many":       {KindSamples, []Sample{{Port: ports}}},
		"a negative port":       {KindSamples, []Sample{{}, {Port: -1}}},
		"before the start":      {KindSamples, []Sample{{At: -1}}},
		"a frame's port":        {KindFrames, frame(0, int32(ports))},
		"a frame in disorder":   {KindFrames, frame(1, 0)},
		"frames in disorder":    {KindFrames, append(frame(0), frame(1)...)},
		"a frame at the start":  {KindFrames, []frames.Frame{{}}},
		"connections":           {KindFrames, []frames.Frame{{At: 1, Conns: []frames.Conn{{Conn: 1}}}}},
		"a switch too many":     {KindSteps, []fabric.Step{{Switch: fabric.NodeID(nodes)}}},
		"a host too many":       {KindSteps, []fabric.Step{{Src: fabric.HostID(nodes)}}},
		"a step's port":         {KindSteps, []fabric.Step{{Port: -1}}},
		"a host that is gone":   {KindGone, Gone{Host: hosts}},
		"its bypass NIC":        {KindGone, Gone{Host: 0, Why: "it lied"}},
		"a short snapshot":      {KindState, State{Ports: make([]PortState, ports)}},
		"an empty report":       {KindReport, Report{}},
		"a report, ports":       {KindReport, report(func(r *Report) { r.Ports = r.Ports[1:] })},
		"a report, refusals":    {KindReport, report(func(r *Report) { r.Refusals = nil })},
		"a report, crossings":   {KindReport, report(func(r *Report) { r.Crossings = nil })},
		"a report, no stalls":   {KindReport, report(func(r *Report) { r.Stalls = nil })},
		"a report, stalls":      {KindReport, report(func(r *Report) { r.Stalls[0].Late.Spans = make([]stalls.Span, 2) })},
		"a report, lateness":    {KindReport, report(func(r *Report) { r.Crossings.Lateness = nil })},
		"a report, deliveries":  {KindReport, report(func(r *Report) { r.Delivery = nil })},
		"many bytes":            {KindSamples, strings.Repeat("x", 1<<20)},
		"many bytes of a state": {KindState, strings.Repeat("x", 2<<20)},
		"no kind of a part":     {"\x1b[2J", nil},
	} {
		j := newTestCoordinator(t)
		m, err := control.Encode(c.kind, c.body)
		if err != nil {
			t.Fatal(err)
		}
		if over, err := j.answer(m, &j.parts[1]); over || err == nil || strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%s: over %v, %v", what, over, err)
		}
	}
	m, err := control.Encode(KindReport, reportOf(&first.cfg))
	if err == nil {
		_, err = first.answer(m, &first.parts[0])
	}
	if err != nil {
		t.Errorf("a report of a part: %v", err)
	}
}

// A part whose records nobody can put in order yet does not fill the memory of the orchestrator.
func TestRecordsThatWaitAreBounded(t *testing.T) {
	j := newTestCoordinator(t)
	m, err := control.Encode(KindSamples, make([]Sample, maxSamples))
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n += maxSamples {
		switch _, err = j.answer(m, &j.parts[1]); {
		case err == nil && n > maxHeld:
			t.Fatalf("%d samples wait", n)
		case err != nil && (n < maxHeld-maxSamples || errors.Is(err, errPart)):
			t.Fatalf("%v after %d samples", err, n)
		case err != nil:
			return
		}
	}
}

// Whatever the process of a part on another machine says, Join goes on or ends with an error.
func FuzzAnswers(f *testing.F) {
	kinds := []string{KindAlive, KindSamples, KindFrames, KindSteps, KindGone, KindDid, KindState, KindReport, "none"}
	corpus := fuzztest.New(f)
	j := newTestCoordinator(f)
	for _, body := range []any{
		Alive{At: 5}, []Sample{{At: 1, Port: 2}}, []frames.Frame{{At: 1, Ports: []frames.Port{{Port: 1}}}},
		[]fabric.Step{{At: 1, Switch: 3}}, Gone{Host: 1}, Did{Error: "words"},
		State{Ports: make([]PortState, len(j.cfg.Network.Ports)), Hosts: make([]HostState, len(j.cfg.Hosts)), Stalls: make([]Stalls, 1)},
		reportOf(&j.cfg), nil,
	} {
		m, err := control.Encode("x", body)
		if err != nil {
			f.Fatal(err)
		}
		corpus.Add([]byte(m.Body))
	}
	corpus.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 0 && !json.Valid(body) {
			return // package control refuses it
		}
		for _, kind := range kinds {
			j := newTestCoordinator(t)
			honest := &j.parts[0]
			honest.did, honest.report, honest.alive = &Did{}, reportOf(&j.cfg), &Alive{At: 10}
			honest.state = &State{Ports: make([]PortState, len(j.cfg.Network.Ports)), Hosts: make([]HostState, len(j.cfg.Hosts))}
			_, _ = j.answer(control.Message{Kind: kind, Body: body}, &j.parts[1]) // an error ends the run
		}
	})
}
