package main

import (
	"testing"

	"weft/sdk/cc"
)

// begun returns a controller on a path of 100 Gb/s and 8 us, whose window is 100 kB.
func begun() *controller {
	c := new(controller)
	c.Init(&cc.Link{Line: 100e9, Packet: 4096, BaseRTT: 8 * cc.Microsecond}, &cc.Values{1, 0.5})
	return c
}

func TestWindowGrowsByAPacketPerRoundTrip(t *testing.T) {
	c := begun()
	before := c.Window()
	for acked := 0.0; acked < before; acked += 1000 {
		c.Ack(0, &cc.Ack{Size: 1000, RTT: 8 * cc.Microsecond})
	}
	if grown := c.Window() - before; grown < 3900 || grown > 4100 {
		t.Errorf("the window grew by %.0f bytes in a round trip; want a packet, 4096", grown)
	}
}

func TestMarkCutsOncePerRoundTrip(t *testing.T) {
	c := begun()
	before := c.Window()
	for range 3 {
		c.Ack(cc.Microsecond, &cc.Ack{Size: 4096, RTT: 8 * cc.Microsecond, Flags: cc.Marked})
	}
	if got := c.Window(); got != before/2 {
		t.Errorf("window of %.0f bytes after three marks in a round trip; want %.0f", got, before/2)
	}
}
