package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"weft/fabric"
	"weft/internal/cleanup"
	"weft/units"
)

// Flows is the flow state of switches that choose ports by their queues. For CCM it also has the
// events for a fabric.Coordinator and its advice.
type Flows struct {
	ports    *ebpf.Map // of flows
	advice   *ebpf.Map
	events   *ebpf.Map
	switches int
}

// Sizes of the memory of all switches together. Our own values: a switch of package fabric
// remembers 16,384 flows.
const (
	flowsOfOne = 1 << 14
	maxFlows   = 1 << 18
	eventBytes = 1 << 22
)

// NewFlows returns the memory for the flows of a number of switches, with that of CCM.
func NewFlows(switches int, ccm bool) (*Flows, error) {
	f := &Flows{switches: switches}
	n := uint32(min(maxFlows, max(1, switches)*flowsOfOne))
	var err error
	f.ports, err = ebpf.NewMap(&ebpf.MapSpec{
		Name: "weft_flows", Type: ebpf.LRUHash, KeySize: 16, ValueSize: 16, MaxEntries: n,
	})
	if err == nil && ccm {
		f.advice, err = ebpf.NewMap(&ebpf.MapSpec{
			Name: "weft_advice", Type: ebpf.LRUHash, KeySize: 16, ValueSize: 24, MaxEntries: n,
		})
	}
	if err == nil && ccm {
		f.events, err = ebpf.NewMap(&ebpf.MapSpec{Name: "weft_events", Type: ebpf.RingBuf, MaxEntries: eventBytes})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("memory for flows in BPF programs: %w", err), f.Close())
	}
	return f, nil
}

// Close releases the memory. Programs that are still attached keep theirs.
func (f *Flows) Close() error {
	var errs []error
	for _, m := range []*ebpf.Map{f.ports, f.advice, f.events} {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	return cleanup.Join(errs...)
}

// Advise sets the advice for a flow to a host (Event.Flow) at a switch. real converts lab time to
// ns of CLOCK_MONOTONIC.
func (f *Flows) Advise(at int, flow uint32, to fabric.HostID, a fabric.Advice, real func(units.Time) int64) error {
	var key [16]byte
	var value [24]byte
	binary.NativeEndian.PutUint64(key[:], uint64(flow)<<32|uint64(uint32(to)))
	binary.NativeEndian.PutUint64(key[8:], uint64(at))
	binary.NativeEndian.PutUint64(value[:], none)
	if a.Away >= 0 {
		binary.NativeEndian.PutUint64(value[:], uint64(a.Away))
		binary.NativeEndian.PutUint64(value[8:], uint64(real(a.Until)))
	}
	if a.Resort != units.Never {
		binary.NativeEndian.PutUint64(value[16:], uint64(real(a.Resort)))
	}
	return f.advice.Put(key, value)
}

// Event is a packet with a coordination tag that has arrived at a switch and left it.
type Event struct {
	At int64 // CLOCK_MONOTONIC in ns
	// Taken is the time that the packet had collected, in units of Port.Unit: by how much later it
	// would have come if its links had delayed it.
	Taken uint16
	fabric.Arrival
}

// Events reads the events of switches. One goroutine may use it.
type Events struct {
	reader *ringbuf.Reader
	fd     int
	record ringbuf.Record
}

// Events returns a reader. It must be closed before the Flows.
func (f *Flows) Events() (*Events, error) {
	r, err := ringbuf.NewReader(f.events)
	if err != nil {
		return nil, fmt.Errorf("events of BPF programs: %w", err)
	}
	return &Events{reader: r, fd: f.events.FD()}, nil
}

// Close ends the reading.
func (r *Events) Close() error { return r.reader.Close() }

// FD returns a descriptor that is readable when there are events.
func (r *Events) FD() int { return r.fd }

// Next reads an event into e, whose Queues it overwrites. ok is false if there is none.
func (r *Events) Next(e *Event) (ok bool, err error) {
	r.reader.SetDeadline(time.Unix(1, 0)) // it waits for nothing
	switch err := r.reader.ReadInto(&r.record); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, e.decode(r.record.RawSample)
}

// decode reads an event of a program.
func (e *Event) decode(b []byte) error {
	if len(b) < eventHead {
		return fmt.Errorf("an event of %d bytes", len(b))
	}
	at := func(offset int) []byte { return b[offset-event:] }
	u32 := func(offset int) int32 { return int32(binary.NativeEndian.Uint32(at(offset))) }
	u16 := func(offset int) uint16 { return binary.NativeEndian.Uint16(at(offset)) }
	queues := e.Queues[:0]
	for q := range slices.Chunk(b[eventHead:len(b)&^7], 8) {
		if port := int32(binary.NativeEndian.Uint32(q)); port >= 0 {
			waits := units.Bytes(binary.NativeEndian.Uint32(q[4:]))
			queues = append(queues, fabric.PortQueue{Port: port, Queued: waits})
		}
	}
	*e = Event{At: int64(binary.NativeEndian.Uint64(at(eventAt))), Taken: u16(eventTaken), Arrival: fabric.Arrival{
		Switch: int(u32(eventSwitch)), From: u32(eventFrom),
		Src: fabric.HostID(u32(eventSrc)), Dst: fabric.HostID(u32(eventDst)),
		Flow: uint32(u32(eventFlow)), SrcPort: u16(eventSource),
		Tag:    fabric.Tag{On: true, CC: at(eventCC)[0] == 1, AR: u16(eventAR)},
		Queues: queues, Before: u32(eventBefore), Port: u32(eventPort), Avoided: at(eventAvoided)[0] == 1,
	}}
	return nil
}
