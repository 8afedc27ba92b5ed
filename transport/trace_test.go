package transport_test

import (
	"fmt"
	"strings"
	"testing"

	"weft/internal/golden"
	"weft/transport"
	"weft/transport/cc/pc4"
	"weft/transport/internal/testnet"
	"weft/units"
)

// lastWindow remembers what an observer was told last.
type lastWindow struct {
	rtt    units.Time
	window units.Bytes
	rate   units.Bandwidth
}

func (l *lastWindow) Acked(_ units.Time, _ transport.ConnID, a transport.Acked) { l.rtt = a.RTT }

func (l *lastWindow) Window(_ units.Time, _ transport.ConnID, w units.Bytes, r units.Bandwidth) {
	l.window, l.rate = w, r
}

// A fixed set of links, and what two senders and a third that joins do on each. A change of behaviour shows as
// a change of these files.
func TestTraces(t *testing.T) {
	for _, link := range []struct {
		name  string
		cfg   testnet.Config
		every units.Time
	}{
		{"rack-100g", star(4), 50 * us},
		{"rack-400g", testnet.Config{Hosts: 4, Line: 400 * units.Gbps, Delay: us, MTU: 4096, Buffer: units.MB}, 50 * us},
		{"row-25g", testnet.Config{Hosts: 4, Line: 25 * units.Gbps, Delay: 5 * us, MTU: 1024, Buffer: units.MB}, 200 * us},
		{"site-10g", testnet.Config{Hosts: 4, Line: 10 * units.Gbps, Delay: 500 * us, MTU: 8192, Buffer: 10 * units.MB}, 5 * units.Millisecond},
		{"shallow-100g", testnet.Config{Hosts: 4, Line: 100 * units.Gbps, Delay: us, MTU: 4096, Buffer: 12 * units.KB}, 50 * us},
	} {
		golden.Check(t, "trace-"+link.name, trace(t, link.cfg, link.every))
	}
}

func trace(t *testing.T, cfg testnet.Config, every units.Time) string {
	t.Helper()
	seen := make([]lastWindow, cfg.Hosts)
	cfg.Observer = func(h int) transport.Observer { return &seen[h] }
	net, err := testnet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	size, done := cfg.Line.BytesIn(10*every), 0
	for h := 1; h <= 3; h++ {
		p := pc4.Defaults()
		p.BaseRate = pc4.Observed
		if err := net.Connect(transport.Spec{
			ID: transport.ConnID(h), Src: transport.HostID(h), Dst: 0, Kind: "pc4", CC: p, Initial: cfg.Line / 2,
		}); err != nil {
			t.Fatal(err)
		}
		net.Events[h] = func(transport.Event) { done++ }
		send(t, net, 5*every*units.Time(h/3), h, size)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%12s  %30s  %30s  %30s  %6s\n", "ns", "h1: rtt ns, window B, Mb/s", "h2", "h3", "drops")
	for at := every; net.Run(at) && done < 3; at += every {
		fmt.Fprintf(&b, "%12d", at/units.Nanosecond)
		for _, w := range seen[1:] {
			fmt.Fprintf(&b, "  %10d %9d %9d", w.rtt/units.Nanosecond, w.window, w.rate/units.Mbps)
		}
		fmt.Fprintf(&b, "  %6d\n", net.Dropped)
	}
	for h, e := range net.Hosts {
		c := e.Counters()
		fmt.Fprintf(&b, "h%d: data %d, again %d, timeouts %d, acks %d, naks %d\n", h, c.DataPackets, c.Retransmits, c.Timeouts, c.Acks, c.Naks)
	}
	return b.String()
}
