package deploy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// The row of a link adds up both directions.
func TestInspectShowsMarks(t *testing.T) {
	s := State{Lab: "lab", Topology: "star", Memory: "no limit", Began: time.Unix(0, 0), Links: []LinkState{{
		Name: "h0-switch0", State: "up", RateBPS: 1e9, Ports: []PortState{{Packets: 100, Marks: 7, Drops: 2}, {Packets: 11, Marks: 10, Lost: 1}},
	}}, Nodes: []NodeState{{Name: "h0", Untaken: 5}, {Name: "h1", NotRouted: 1, Spoofed: 3, SpoofedMAC: 2}}}
	var b strings.Builder
	if err := s.Show(&b); err != nil {
		t.Fatal(err)
	}
	const refused = "h1 sent frames that were not carried: 1 without a destination, 0 malformed, 3 with a spoofed address, 2 with a spoofed MAC address"
	if text := b.String(); !strings.Contains(text, refused) || strings.Count(text, "not carried") != 1 {
		t.Errorf("got %s\nwant %s", text, refused)
	}
	if want := "h0 sent 5 frames to Weft's own ports"; strings.Count(b.String(), want) != 1 || strings.Count(b.String(), "own ports") != 1 {
		t.Errorf("got %s\nwant %s", b.String(), want)
	}
	if strings.Contains(b.String(), " \n") {
		t.Errorf("blanks at the end of a line: %q", b.String())
	}
	want := "link state rate delay loss queued packets marked dropped h0-switch0 up 1Gbps 0s 0% 0 B 111 17 3"
	if got := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A node that runs without its interface is not shown as one that just runs.
func TestInspectShowsNodesWithoutInterfaces(t *testing.T) {
	s := State{Lab: "lab", Began: time.Unix(0, 0), Nodes: []NodeState{
		{Name: "h0", Tier: "host", State: "running", PID: 1}, {Name: "h1", Tier: "host", State: "running", PID: 2, Unplugged: true, Why: "it was deleted"},
		{Name: "h2", Tier: "host", State: "running", PID: 3, Holder: Holder{Container: "c0ffee", Interface: "eth0"}},
		{Name: "h3", Tier: "host", State: "running", PID: 4, Unplugged: true, Holder: Holder{Container: "c0ffee", Interface: "eth0"}},
	}}
	var b strings.Builder
	if err := s.Show(&b); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"h0 host running 1", "h1 host running, without its interface 2",
		"h2 host running, as eth0 of container c0ffee 3", "h3 host running, of container c0ffee, without its interface 4", "h1: it was deleted"} {
		if !strings.Contains(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// If packets overtake each other, no rate is measured, and the table shows "-" and not 0.
func TestCheckShowsWhatWasNotMeasured(t *testing.T) {
	var b strings.Builder
	m := Measured{Link: "h0-switch0", From: "h0", To: "switch0", Hops: 1, Tried: true, OK: true, AskedRateBPS: 1e9, AskedDelayUS: 2, DelayUS: 3}
	if err := ShowMeasured(&b, []Measured{m}, Checked{Links: 1}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(got, "only this link 1 Gb/s - 2 us 3 us") {
		t.Error(got)
	}
}

// What no probe could tell is not called ok, in the table and in JSON.
func TestCheckSaysWhatItCouldNotTell(t *testing.T) {
	m := Measured{Link: "h0-switch0", From: "h0", To: "h1", Hops: 2, Tried: true, AskedRateBPS: 1e9, RateBPS: 1e9, AskedDelayUS: 2, DelayUS: 2,
		AskedLoss: 0.002, Probes: 4000}
	m.judge(0)
	for bound, want := range map[bool]string{
		false: "rate and delay ok, but a loss of 0.2 % is too small to tell from none with 4000 packets\n",
		true:  "none with 4000 packets, and its own rate of 4 Gb/s was not measured above 1 Gb/s\n",
	} {
		if m.Bound = bound; bound {
			m.LinkRateBPS = 4e9
		}
		var b strings.Builder
		if err := ShowMeasured(&b, []Measured{m}, Checked{Links: 1}); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%v, got %s, want %s", err, b.String(), want)
		}
	}
	if text, err := json.Marshal(m); err != nil || !strings.Contains(string(text), `"ok":false,"unjudged":"loss"`) {
		t.Errorf("%s, %v", text, err)
	}
}

// A link inside the network is measured over a path: its row says so, and that a miss may be
// another link's.
func TestCheckSaysOfEachRowWhatItMeasured(t *testing.T) {
	var b strings.Builder
	all := []Measured{
		{Link: "h2-edge1", From: "h2", To: "h0", Hops: 3, Tried: true, Bad: "rate", AskedRateBPS: 20e6, RateBPS: 15.13e6},
		{Link: "h3-edge1", From: "h3", To: "edge1", Hops: 1, Tried: true, Bad: "rate", AskedRateBPS: 20e6, RateBPS: 15.13e6},
		{Link: "h4-edge1", From: "h4", To: "edge1", Hops: 1, Tried: true, Bad: "settings", Changes: []string{"loss=0.1"}},
		{Link: "h5-edge1", From: "h5", To: "edge1", Hops: 1, Tried: true, Bad: "rate, settings", Changes: []string{"rate=5Mbps"}},
	}
	if err := ShowMeasured(&b, all, Checked{Links: 4}); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(b.String(), "\n")
	for i, want := range [][]string{
		{"h2 to h0, path of 3 links", "missed: rate of the path; any of its links may be the cause"},
		{"h3 to edge1, only this link", "missed: rate"},
		{"h4 to edge1, only this link", "%  changed since the lab was deployed: the link has loss=0.1"},
		{"h5 to edge1, only this link", "missed: rate; changed since the lab was deployed: the link has rate=5Mbps"},
	} {
		for _, text := range want {
			if !strings.Contains(rows[i+1], text) {
				t.Errorf("%q lacks %q", rows[i+1], text)
			}
		}
	}
	if strings.Contains(rows[2], "path") {
		t.Errorf("the row of a single link is of a path: %q", rows[2])
	}
}

// What was not measured has no value in JSON either: a reader would take a 0 for one.
func TestCheckHasNoValuesOfWhatWasNotMeasured(t *testing.T) {
	values := []string{`"rate_bps"`, `"delay_us"`, `"loss"`, `"loss_probes"`, `"asked_rate_bps"`, `"asked_delay_us"`, `"asked_loss"`}
	m := Measured{Link: "h0-switch0", From: "h0", To: "h1", Hops: 2, Why: "h1 is paused", Tries: 1}
	for _, c := range []struct {
		m    Measured
		want []string
	}{
		{m, nil},
		{Measured{Link: m.Link, Tried: true, AskedRateBPS: 1e9, RateBPS: 1e9, AskedDelayUS: 2, DelayUS: 2, Probes: 300}, values},
		{Measured{Link: m.Link, Tried: true, AskedRateBPS: 1e9, AskedDelayUS: 2, Loss: 1, Probes: 300}, values[2:]}, // none came
	} {
		text, err := json.Marshal(c.m)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range values {
			if got, want := strings.Contains(string(text), name), slices.Contains(c.want, name); got != want {
				t.Errorf("%s in %s: %v, want %v", name, text, got, want)
			}
		}
		var back Measured
		if err := json.Unmarshal(text, &back); err != nil || back.Why != c.m.Why || back.Tried != c.m.Tried || back.Loss != c.m.Loss {
			t.Errorf("%s is read as %+v, %v", text, back, err)
		}
	}
}
