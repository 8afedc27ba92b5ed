package watch

import (
	"strings"
	"testing"

	"weft/results/frames"
	"weft/results/record"
	"weft/units"
)

const us = units.Microsecond

// pair returns the map of two hosts at a switch.
func pair() *record.NetworkMap {
	return &record.NetworkMap{
		Nodes: []record.MapNode{{Name: "h0", Host: true}, {Name: "h1", Host: true}, {Name: "s0"}},
		Ports: []record.MapPort{
			{Name: "h0->s0", From: 0, To: 2, RateBPS: 8e9}, {Name: "s0->h0", From: 2, To: 0, RateBPS: 8e9},
			{Name: "h1->s0", From: 1, To: 2, RateBPS: 8e9}, {Name: "s0->h1", From: 2, To: 1, RateBPS: 8e9},
		},
	}
}

// The screen shows the present queues and rates, and judges what can be judged.
func TestScreen(t *testing.T) {
	s := New("small pc4", pair())
	s.Done, s.Total = 250e3, 1e6
	s.Collectives = []string{"incast"}
	s.Expect = []string{"drops == 0", "max_queue <= 10KB", "fct.p99 < 1ms", "ce_marks > 5"}
	first := frames.Frame{At: 10 * us, Ports: []frames.Port{{Port: 0, Sent: 10e3}, {Port: 3, Sent: 5e3, Queued: 20e3}}}
	s.Add([]frames.Frame{first})
	second := frames.Frame{At: 20 * us, Ports: []frames.Port{{Port: 0, Sent: 15e3}, {Port: 3, Sent: 15e3, Queued: 6e3, Marks: 2, Paused: true}},
		Conns: []frames.Conn{{Conn: 4, Arrived: 9e3}}}
	s.Add([]frames.Frame{first, second})
	text := s.Text(100, 40)
	for _, want := range []string{
		"small pc4   20 us", " 25 %  250 KB of 1 MB", "6 KB queued, at most 20 KB in one", "2 marked, 0 dropped; 1 connections",
		"workload: incast", "paused", "100 %", " 50 %", "so far      drops == 0", "missed      max_queue <= 10KB",
		"at the end  fct.p99 < 1ms", "at the end  ce_marks > 5", "Ctrl-C",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if queue := strings.Index(text, "s0->h1"); queue < 0 || queue > strings.Index(text, "busiest links") {
		t.Errorf("the queue is not listed:\n%s", text)
	}
	s.Add([]frames.Frame{first, second, {At: 30 * us, Ports: []frames.Port{{Port: 0, Sent: 15e3}}}})
	if text = s.Text(100, 40); !strings.Contains(text, "nothing waits") || !strings.Contains(text, "nothing is sent") {
		t.Errorf("an idle network:\n%s", text)
	}
}

// Text fits the terminal, whatever its size, and rows of ports that the network lacks are left out.
func TestScreenFits(t *testing.T) {
	s := New(strings.Repeat("long ", 40), pair())
	s.Add([]frames.Frame{{At: us, Ports: []frames.Port{{Port: -1}, {Port: 3, Queued: 5}, {Port: 99, Queued: 7}}}})
	for _, size := range [][2]int{{80, 24}, {40, 5}, {200, 60}, {0, 0}, {1, 1}} {
		lines := strings.Split(s.Text(size[0], size[1]), "\n")
		if size[1] > 0 && len(lines) > size[1] {
			t.Errorf("%d lines in a terminal of %d", len(lines), size[1])
		}
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "q leaves") {
			t.Errorf("the last line of a terminal of %d by %d is %q", size[0], size[1], last)
		}
		for _, l := range lines {
			if n := len([]rune(l)); n > max(size[0], 40) {
				t.Errorf("%d columns in a terminal of %d: %s", n, size[0], l)
			}
		}
	}
}
