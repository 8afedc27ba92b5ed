package main

import (
	"strings"
	"testing"
	"time"

	"weft/orchestrator/deploy"
)

// Of a link inspect says what both directions marked and dropped.
func TestInspectShowsMarks(t *testing.T) {
	s := deploy.State{Lab: "lab", Began: time.Unix(0, 0), Links: []deploy.LinkState{{
		Name: "h0-switch0", State: "up", RateBPS: 1e9, Ports: []deploy.PortState{{Packets: 100, Marks: 7, Drops: 2}, {Packets: 11, Marks: 10, Lost: 1}},
	}}}
	var b strings.Builder
	if err := showState(&b, &s); err != nil {
		t.Fatal(err)
	}
	want := "link state rate delay loss queued packets marked dropped h0-switch0 up 1Gbps 0s 0% 0 B 111 17 3"
	if got := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
