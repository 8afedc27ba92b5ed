package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf"

	"weft/fabric"
	"weft/transport/wire"
	"weft/units"
)

// hub is a switch 1 with hosts 0 to 2: host 0 behind port 0, from which packets come, host 1 at it,
// by port 1, and host 2 by any of the ports from 2 on, which lead to switch 2, or by the detours
// behind them, which lead to switch 3.
type hub struct {
	t              *testing.T
	table          *Table
	port           *Port
	flows          *Flows
	queues         []units.Bytes // by port
	width, detours int
}

// hosts of a hub.
var hubHosts = []netip.Addr{anAddress(1), anAddress(2), anAddress(3)}

const (
	hubLight, hubCongested = 10_000, 40_000
	hubSeed                = 77
)

func newHub(t *testing.T, width, detours int, b fabric.Balance) *hub {
	t.Helper()
	ports := 2 + width + detours
	h := &hub{t: t, table: loaded(t, ports), width: width, detours: detours, queues: make([]units.Bytes, ports)}
	routes, err := NewRoutes(4, max(width, detours), detours > 0, hubHosts)
	if err != nil {
		t.Fatal(err)
	}
	if h.flows, err = NewFlows(4, b == fabric.CCM); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _, _ = routes.Close(), h.flows.Close() })
	h.table.Dilate(1000)
	var away []uint32
	for i := range width + detours {
		away = append(away, uint32(2+i))
	}
	routes.Set(1, 1, []uint32{1 | ToHost})
	routes.Set(1, 2, away[:width])
	if detours > 0 {
		routes.SetDetours(1, 2, away[width:])
	}
	for i := range h.queues {
		h.table.Port(i).Light(hubLight, hubCongested)
		h.table.rows[i].max = 80_000
	}
	h.port = h.table.Port(0)
	h.port.Tags, h.port.FromHost = b == fabric.CCM, true
	h.port.At = &Switch{Routes: routes, Index: 1, Seed: hubSeed, Balance: b, Flows: h.flows}
	return h
}

// fill sets the queues.
func (h *hub) fill(queue func(port int) units.Bytes) {
	for i := range h.queues {
		h.queues[i] = queue(i)
		h.table.rows[i].entered, h.table.rows[i].left = 1e6+uint64(h.queues[i]), 1e6
	}
}

// leave loads the program of the packets that arrive at the switch, which must not have to follow
// more than a fifth of the steps that the kernel allows.
func (h *hub) leave() *ebpf.Program {
	h.t.Helper()
	p, err := h.port.Leave(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { p.Close() })
	if info, err := p.Info(); err == nil {
		if n, known := info.VerifiedInstructions(); known && n > 200_000 {
			h.t.Errorf("%d equal ports: the kernel's verifier followed %d instructions", h.width, n)
		}
	}
	return p
}

// run runs a program on a frame and returns what became of it and the port of its mark, or -1.
func (h *hub) run(p *ebpf.Program, in []byte) (out []byte, port int32) {
	h.t.Helper()
	out, context := make([]byte, len(in)+256), make([]byte, 192)
	if _, err := p.Run(&ebpf.RunOptions{Data: in, DataOut: out, ContextOut: context}); err != nil {
		h.t.Fatal(err)
	}
	mark := binary.NativeEndian.Uint32(context[skbMark:])
	if mark == 0 {
		return out[:len(in)], -1
	}
	return out[:len(in)], int32(mark - firstMark)
}

// An adaptive switch keeps a flow on its port while that is light, and otherwise takes the shortest
// queue: for any queues and numbers of ports. Control packets and lone ports are left alone.
func TestPrivAdapts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range sizes {
		width, detours := n[0], n[1]
		h := newHub(t, width, detours, fabric.Adaptive)
		p := h.leave()
		at, moved, detoured := map[uint16]int32{}, 0, 0
		for range 300 {
			heavy := r.IntN(3) == 0
			h.fill(func(port int) units.Bytes {
				if heavy && port < 2+width {
					return units.Bytes(hubLight + 1 + r.IntN(8000))
				}
				return units.Bytes(r.IntN(3) * r.IntN(8000))
			})
			source := uint16(r.IntN(9))
			usual := int32(2 + fabric.Choose(fabric.FlowHash(0, 2, source, 4791), hubSeed, width))
			want, known := at[source]
			if !known {
				want = usual
			}
			if h.queues[want] > hubLight {
				best := usual
				shortest := func(first, n int32) {
					other := first + (usual-2)%n
					for i := range n {
						if q := first + (usual-2+i)%n; h.queues[q] < h.queues[other] {
							other = q
						}
					}
					if first == 2 || h.queues[other] <= hubLight {
						best = other
					}
				}
				if shortest(2, int32(width)); detours > 0 && h.queues[best] > hubLight {
					shortest(2+int32(width), int32(detours))
				}
				if best != want {
					moved++
				}
				want = best
			}
			if int(want) >= 2+width {
				detoured++
			}
			if width+detours > 1 {
				at[source] = want
			} else {
				want = 2
			}
			packet := frame(hubHosts[0], hubHosts[2], 17, source, 4791)
			if _, got := h.run(p, packet); got != want {
				t.Fatalf("%d ports, queues %d: by %d, want %d", width, h.queues, got, want)
			}
			packet[15] = wire.TOSControl
			if _, got := h.run(p, packet); got != usual {
				t.Fatalf("a control packet leaves by %d, want %d", got, usual)
			}
		}
		if got, _ := h.port.Moved(); width+detours > 1 && (got != uint64(moved) || moved == 0) {
			t.Errorf("%d ports: moved %d flows, want %d", width, got, moved)
		}
		if (detours > 0) != (detoured > 0) {
			t.Errorf("%d ports and %d detours, of which %d packets took one", width, detours, detoured)
		}
	}
}

// tagged returns a data packet with a tag.
func tagged(to netip.Addr, source uint16, tag wire.Coordination, may bool) []byte {
	d := wire.Data{Flags: wire.Announce, Payload: 100, Size: 100, Coordination: tag}
	b := append(frame(hubHosts[0], to, 17, source, wire.Port)[:atMessage], make([]byte, int(d.Len())+100)...)
	d.Encode(b[atMessage:])
	if may {
		b[atMessage+int(wire.DataSize)+1] = 1
	}
	return b
}

// A switch with CCM does with each packet what those of package fabric do: for any queues, tags and
// numbers of ports, for flows that avoid a port, and where nothing is light.
func TestPrivCoordinates(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) { checkCoordination(t, r, n[0], n[1]) })
	}
}

// sizes are numbers of equal ports and of detours.
var sizes = [][2]int{{1, 0}, {2, 0}, {3, 0}, {8, 0}, {16, 0}, {1, 1}, {2, 3}, {3, 2}, {8, 8}}

func checkCoordination(t *testing.T, r *rand.Rand, width, detours int) {
	h := newHub(t, width, detours, fabric.CCM)
	p := h.leave()
	notes := 0
	core, err := fabric.NewCoordinator(h.config(), func(port int) units.Bytes { return h.queues[port] },
		func(fabric.NodeID, fabric.Note) { notes++ })
	if err != nil {
		t.Fatal(err)
	}
	events, err := h.flows.Events()
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	var e Event
	marked, asked, detoured := 0, 0, 0
	type flow struct {
		source uint16
		to     int
	}
	type given struct {
		flow   uint32
		advice fabric.Advice
	}
	advised := map[flow]given{}
	for i := range 600 {
		h.fill(func(int) units.Bytes { return units.Bytes(r.IntN(4) * r.IntN(30_000)) })
		if i%3 == 0 {
			h.fill(func(int) units.Bytes { return units.Bytes(hubCongested + 1 + r.IntN(80_000)) })
		}
		to := 1 + r.IntN(2)
		tag := wire.Coordination{On: true, CC: r.IntN(4) == 0, AR: []uint16{0, wire.AskSource, 2, 9}[r.IntN(4)]}
		source := uint16(r.IntN(5))
		now := units.Time(i+1) * units.Microsecond
		if a, known := advised[flow{source, to}]; known {
			// what is over is so by the kernel's clock, and what is not is far from that
			real := func(at units.Time) int64 {
				if at <= now {
					return 1
				}
				return 1 << 62
			}
			if err := h.flows.Advise(1, a.flow, fabric.HostID(to), a.advice, real); err != nil {
				t.Fatal(err)
			}
		}
		out, port := h.run(p, tagged(hubHosts[to], source, tag, r.IntN(2) == 0))
		if ok, err := events.Next(&e); !ok || err != nil {
			t.Fatal(ok, err)
		}
		want, advice := core.Arrived(now, &e.Arrival)
		shim := out[atMessage+int(wire.DataSize):]
		got := fabric.Decision{Port: e.Port, Tag: fabric.Tag{On: true, CC: shim[0] == 1, AR: binary.BigEndian.Uint16(shim[2:])},
			Mark: shim[1] == 1}
		if got != want || e.SrcPort != source || int(e.Dst) != to || e.Src != 0 || e.Switch != 1 || e.From != 0 {
			t.Fatalf("packet %d, %+v\nqueues %d: %+v, want %+v", i, e, h.queues, got, want)
		}
		if to == 1 && port != -1 || to == 2 && port != e.Port {
			t.Fatalf("routed by %d, told %d", port, e.Port)
		}
		if int(e.Port) >= 2+width {
			detoured++
		}
		if got.Mark && to == 2 && !tag.CC {
			marked++
		}
		if to == 2 && r.IntN(8) == 0 {
			note := fabric.Note{Type: fabric.NeedsPath, Src: 0, Dst: 2, SrcPort: source, Switch: 5}
			if flow, a, ok := core.Heard(now, 1, note); ok && flow == e.Flow {
				advice, asked = a, asked+1
			}
		}
		advised[flow{source, to}] = given{e.Flow, advice}
	}
	if marked == 0 || asked == 0 && width+detours > 1 || notes == 0 {
		t.Errorf("%d marked as a last resort, %d asked, %d notifications: this shows little", marked, asked, notes)
	}
	if (detours > 0) != (detoured > 0) {
		t.Errorf("%d packets took one of %d detours", detoured, detours)
	}
	plain := frame(hubHosts[0], hubHosts[2], 17, 1, 53)
	if out, port := h.run(p, plain); !slices.Equal(out, plain) || int(port) != 2+fabric.Choose(
		fabric.FlowHash(0, 2, 1, 53), hubSeed, width) {
		t.Errorf("a packet without a tag leaves by %d", port)
	}
	if ok, err := events.Next(&e); ok || err != nil {
		t.Errorf("of it there is an event: %v, %v", ok, err)
	}
	events.Close()
	if _, err := events.Next(&e); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// config returns the network of a hub, as far as its switch knows it.
func (h *hub) config() fabric.Config {
	cfg := fabric.Config{Hosts: 3, Port: wire.Port,
		CCM: &fabric.CCMConfig{RTT: 3 * units.Microsecond, Every: units.Microsecond, Refresh: 10 * units.Microsecond}}
	link := func(from, to fabric.NodeID) {
		cfg.Ports = append(cfg.Ports, fabric.PortConfig{From: from, To: to, Link: fabric.Link{Rate: 100 * units.Gbps, Delay: units.Microsecond},
			Buffer: units.MB, Light: hubLight, Congested: hubCongested, ECN: fabric.ECNConfig{On: true, Kmin: 40_000, Kmax: 80_000, Pmax: 1}})
	}
	link(0, 4)
	link(4, 1)
	for range h.width {
		link(4, 5)
	}
	for range h.detours {
		link(4, 6)
	}
	link(5, 2)
	link(4, 0)
	link(1, 4)
	link(2, 5)
	link(3, 5) // switch 0 is beyond
	link(5, 3)
	link(5, 4)
	link(6, 5)
	link(5, 6)
	ports := make([]int32, h.width+h.detours)
	for i := range ports {
		ports[i] = int32(2 + i)
	}
	n := int32(len(h.queues))
	cfg.Switches = []fabric.SwitchConfig{
		{Balance: fabric.CCM, Groups: [][]int32{{n + 4}}, Route: []int32{0, 0, 0, -1, 0, 0, 0}},
		{Balance: fabric.CCM, Seed: hubSeed, Groups: [][]int32{{n + 1}, {1}, ports[:h.width]},
			Route: []int32{0, 1, 2, 2, -1, 2, 2}},
		{Balance: fabric.CCM, Groups: [][]int32{{n}, {n + 5}, {n + 6}, {n + 8}}, Route: []int32{2, 2, 0, 1, 2, -1, 3}},
		{Balance: fabric.CCM, Groups: [][]int32{{n + 7}}, Route: []int32{0, 0, 0, 0, 0, 0, -1}},
	}
	if h.detours > 0 {
		cfg.Switches[1].Groups = append(cfg.Switches[1].Groups, ports[h.width:])
		cfg.Switches[1].Aside = []int32{-1, -1, 3}
	}
	return cfg
}
