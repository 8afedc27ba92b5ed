package bpf

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"

	"weft/fabric"
	"weft/internal/splitmix"
	"weft/internal/testenv"
	"weft/tc-shaping/qdisc"
)

// loaded returns a table, or skips the test where programs cannot be loaded.
func loaded(t *testing.T, ports int) *Table {
	t.Helper()
	testenv.NeedRoot(t)
	table, err := NewTable(ports)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	})
	return table
}

// anAddress returns 10.0.0.n.
func anAddress(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }

// frame returns an Ethernet frame of an IPv4 packet.
func frame(from, to netip.Addr, protocol byte, source, destination uint16) []byte {
	b := make([]byte, 60)
	copy(b, []byte{2, 0, 9, 9, 9, 9})
	mac, src, dst := [4]byte{}, from.As4(), to.As4()
	mac = src
	copy(b[6:], append([]byte{2, 0}, mac[:]...))
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	b[14], b[15], b[23] = 0x45, 0x02, protocol // ECT(0)
	copy(b[26:], src[:])
	copy(b[30:], dst[:])
	binary.BigEndian.PutUint16(b[34:], source)
	binary.BigEndian.PutUint16(b[36:], destination)
	return b
}

// The programs choose the ports that the switches of the modelled network choose: for any hosts,
// ports, seeds and numbers of paths.
func TestPrivChoiceIsTheFabrics(t *testing.T) {
	table := loaded(t, 1)
	hosts := make([]netip.Addr, 7)
	for h := range hosts {
		hosts[h] = netip.AddrFrom4([4]byte{10, 3, byte(h * 17), byte(200 - h)})
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 12 {
		const switches, at = 3, 1
		paths := 1 + r.IntN(9)
		routes, err := NewRoutes(switches, paths, false, hosts)
		if err != nil {
			t.Fatal(err)
		}
		port := table.Port(0)
		if err := port.Set(&qdisc.Gate{Limit: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		port.At = &Switch{Routes: routes, Index: at, Seed: r.Uint64()}
		ports := make([]uint32, paths)
		for i := range ports {
			ports[i] = uint32(100 + i)
		}
		for h := range hosts[1:] { // nothing goes to the last one
			routes.Set(at, h, ports)
		}
		p, err := port.Leave(nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			src, dst := r.IntN(len(hosts)), r.IntN(len(hosts))
			protocol := []byte{17, 17, 6, 1}[r.IntN(4)]
			source, destination := uint16(r.Uint32()), uint16(r.Uint32())
			packet := frame(hosts[src], hosts[dst], protocol, source, destination)
			if dst == len(hosts)-1 {
				before := port.Counters().Unrouted
				if verdict, err := p.Run(&ebpf.RunOptions{Data: packet}); err != nil || verdict != drop ||
					port.Counters().Unrouted != before+1 {
					t.Fatalf("a packet that no port leads to: %d, %v, %+v", verdict, err, port.Counters())
				}
				continue
			}
			got := markOf(t, p, packet)
			if protocol == 1 {
				source, destination = 0, 0
			}
			hash := fabric.FlowHash(fabric.HostID(src), fabric.HostID(dst), source, destination)
			if protocol != 17 {
				hash ^= uint64(protocol) * splitmix.Gamma
			}
			want := MarkOf(int(ports[fabric.Choose(hash, port.At.Seed, paths)]))
			if got != want {
				t.Fatalf("%d to %d, protocol %d, ports %d and %d, %d paths: mark %d, want %d", src, dst, protocol, source,
					destination, paths, got, want)
			}
		}
		stranger := frame(netip.MustParseAddr("10.9.9.9"), hosts[0], 17, 1, 2)
		fragment := frame(hosts[1], hosts[0], 17, 1, 2)
		fragment[20] = 0x20
		for _, f := range [][]byte{stranger, fragment} {
			if got := markOf(t, p, f); got != 0 {
				t.Errorf("mark %d", got)
			}
		}
		p.Close()
		if err := routes.Close(); err != nil {
			t.Error(err)
		}
	}
}

// markOf runs a program on a frame and returns the packet's mark.
func markOf(t *testing.T, p *ebpf.Program, frame []byte) uint32 {
	t.Helper()
	var context [192]byte // struct __sk_buff
	verdict, err := p.Run(&ebpf.RunOptions{Data: frame, ContextOut: context[:]})
	if err != nil {
		t.Fatal(err)
	}
	if int32(verdict) != pass {
		t.Fatalf("verdict %d", int32(verdict))
	}
	return binary.NativeEndian.Uint32(context[skbMark:])
}
