package transport_test

import (
	"fmt"
	"strings"
	"testing"

	"weft/internal/golden"
	"weft/transport"
	"weft/transport/cc/pc4"
	"weft/units"
)

// lastWindow is an observer that keeps the last RTT, window and pacing rate of a connection.
type lastWindow struct {
	rtt    units.Time
	window units.Bytes
	rate   units.Bandwidth
}

func (l *lastWindow) Acked(_ units.Time, _ transport.ConnID, a transport.Acked) { l.rtt = a.RTT }

func (l *lastWindow) Limited(_ units.Time, _ transport.ConnID, to transport.Limits) {
	l.window, l.rate = to.Window, to.Rate
}

// TestTraces runs two PC4 senders, and a third that joins them, on links of different speed, length
// and buffer. A change of the sender's behaviour shows as a change of the golden files.
func TestTraces(t *testing.T) {
	for _, link := range []struct {
		name  string
		cfg   netConfig
		every units.Time
	}{
		{"rack-100g", star(4), 50 * us},
		{"rack-400g", netConfig{Hosts: 4, Line: 400 * units.Gbps, Delay: us, MTU: 4096, Buffer: units.MB}, 50 * us},
		{"row-25g", netConfig{Hosts: 4, Line: 25 * units.Gbps, Delay: 5 * us, MTU: 1024, Buffer: units.MB}, 200 * us},
		{"site-10g", netConfig{Hosts: 4, Line: 10 * units.Gbps, Delay: 500 * us, MTU: 8192, Buffer: 10 * units.MB}, 5 * units.Millisecond},
		{"shallow-100g", netConfig{Hosts: 4, Line: 100 * units.Gbps, Delay: us, MTU: 4096, Buffer: 12 * units.KB}, 50 * us},
	} {
		title := fmt.Sprintf("PC4 on %v links: h1 and h2 send to h0 from the start, h3 joins after %d us.",
			link.cfg.Line, 5*link.every/us)
		golden.Table(t, "trace-"+link.name, title, trace(t, link.cfg, link.every))
	}
}

// trace returns a table of the three connections, with a row per interval, and the packet counters
// of all hosts.
func trace(t *testing.T, cfg netConfig, every units.Time) string {
	t.Helper()
	seen := make([]lastWindow, cfg.Hosts)
	cfg.Observer = func(h int) transport.Observer { return &seen[h] }
	net, err := newNet(cfg)
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
		sendAt(t, net, 5*every*units.Time(h/3), h, size)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%8s", "")
	for h := 1; h <= 3; h++ {
		fmt.Fprintf(&b, "  | %-31s", fmt.Sprintf("h%d", h))
	}
	fmt.Fprintf(&b, "  |\n%8s", "time us")
	for range 3 {
		fmt.Fprintf(&b, "  | %8s  %8s  %11s", "RTT ns", "window B", "pacing Mb/s")
	}
	fmt.Fprintf(&b, "  | %7s\n", "dropped")
	for at := every; net.Run(at) && done < 3; at += every {
		fmt.Fprintf(&b, "%8d", at/us)
		for _, w := range seen[1:] {
			pacing := "-"
			if w.rate > 0 {
				pacing = fmt.Sprint(int64(w.rate / units.Mbps))
			}
			fmt.Fprintf(&b, "  | %8d  %8d  %11s", w.rtt/units.Nanosecond, w.window, pacing)
		}
		fmt.Fprintf(&b, "  | %7d\n", net.Dropped)
	}
	fmt.Fprintf(&b, "\npackets  %8s  %13s  %8s  %8s  %8s\n", "data", "retransmitted", "timeouts", "ACKs", "NAKs")
	for h, e := range net.Hosts {
		c := e.Counters()
		fmt.Fprintf(&b, "h%-6d  %8d  %13d  %8d  %8d  %8d\n", h, c.DataPackets, c.Retransmits, c.Timeouts, c.Acks, c.Naks)
	}
	return b.String()
}
