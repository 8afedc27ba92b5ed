// Package pcapng writes captured Ethernet frames in the format of Wireshark and tcpdump
// (draft-ietf-opsawg-pcapng). It covers what a capture of Weft needs: one section, one interface,
// frames with their direction and the number of frames lost before them.
//
// Times are lab time since the start in nanoseconds, which analysers understand; picoseconds are
// rounded down. The package writes to an io.Writer and opens nothing.
package pcapng

import (
	"encoding/binary"
	"fmt"
	"io"

	"weft/units"
)

// Interface describes what was captured.
type Interface struct {
	Name        string // h0, or edge0->agg1
	Description string
	Comment     string // comment on the whole file
	Program     string // name and version of the writing program
	Snap        int    // most bytes kept of each frame; 0: all
}

// Frame is a captured frame.
type Frame struct {
	At      units.Time // not negative
	Out     bool       // sent by the node or port; otherwise received
	Length  int        // of the whole frame in bytes, without the frame check sequence
	Dropped uint32     // frames lost since the previous one
	Data    []byte     // the kept bytes
}

// Blocks, options and values of the format, by its sections 4 and 3.5.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockPacket    = 6

	optEnd            = 0
	optComment        = 1
	optProgram        = 4 // shb_userappl
	optName           = 2 // if_name
	optDescription    = 3 // if_description
	optResolution     = 9 // if_tsresol
	optFlags          = 2 // epb_flags
	optDropCount      = 4 // epb_dropcount
	linkEthernet      = 1
	nanoseconds       = 9 // 10^-9 s
	inbound, outbound = 1, 2
)

// Writer writes a file. It is not safe for concurrent use.
type Writer struct {
	w io.Writer
	b []byte
}

// NewWriter writes a file's headers.
func NewWriter(w io.Writer, i Interface) (*Writer, error) {
	p := &Writer{w: w}
	at := p.begin(blockSection)
	p.b = binary.LittleEndian.AppendUint32(p.b, 0x1a2b3c4d) // byte order
	p.b = binary.LittleEndian.AppendUint16(p.b, 1)          // version 1.0
	p.b = binary.LittleEndian.AppendUint16(p.b, 0)
	p.b = binary.LittleEndian.AppendUint64(p.b, 1<<64-1) // length of the section: unknown
	p.text(optComment, i.Comment)
	p.text(optProgram, i.Program)
	p.end(at)
	at = p.begin(blockInterface)
	p.b = binary.LittleEndian.AppendUint16(p.b, linkEthernet)
	p.b = binary.LittleEndian.AppendUint16(p.b, 0)
	p.b = binary.LittleEndian.AppendUint32(p.b, uint32(i.Snap))
	p.text(optName, i.Name)
	p.text(optDescription, i.Description)
	p.option(optResolution, []byte{nanoseconds})
	p.end(at)
	return p, p.flush()
}

// Write appends a frame.
func (p *Writer) Write(f Frame) error {
	if f.At < 0 || f.Length < len(f.Data) {
		return fmt.Errorf("pcapng: %d bytes of a frame of %d at %d ps", len(f.Data), f.Length, f.At)
	}
	ns := uint64(f.At / units.Nanosecond)
	at := p.begin(blockPacket)
	p.b = binary.LittleEndian.AppendUint32(p.b, 0) // interface
	p.b = binary.LittleEndian.AppendUint32(p.b, uint32(ns>>32))
	p.b = binary.LittleEndian.AppendUint32(p.b, uint32(ns))
	p.b = binary.LittleEndian.AppendUint32(p.b, uint32(len(f.Data)))
	p.b = binary.LittleEndian.AppendUint32(p.b, uint32(f.Length))
	p.padded(f.Data)
	direction := uint32(inbound)
	if f.Out {
		direction = outbound
	}
	p.option(optFlags, binary.LittleEndian.AppendUint32(nil, direction))
	if f.Dropped > 0 {
		p.option(optDropCount, binary.LittleEndian.AppendUint64(nil, uint64(f.Dropped)))
	}
	p.end(at)
	return p.flush()
}

// begin starts a block; end fills in its length.
func (p *Writer) begin(kind uint32) (at int) {
	at = len(p.b)
	p.b = binary.LittleEndian.AppendUint32(p.b, kind)
	p.b = binary.LittleEndian.AppendUint32(p.b, 0)
	return at
}

func (p *Writer) end(at int) {
	p.b = binary.LittleEndian.AppendUint32(p.b, optEnd)
	length := uint32(len(p.b) - at + 4)
	p.b = binary.LittleEndian.AppendUint32(p.b, length)
	binary.LittleEndian.PutUint32(p.b[at+4:], length)
}

// maxOption is the longest value of an option.
const maxOption = 1<<16 - 1

func (p *Writer) text(code uint16, text string) {
	if text != "" {
		p.option(code, []byte(text[:min(len(text), maxOption)]))
	}
}

func (p *Writer) option(code uint16, value []byte) {
	p.b = binary.LittleEndian.AppendUint16(p.b, code)
	p.b = binary.LittleEndian.AppendUint16(p.b, uint16(len(value)))
	p.padded(value)
}

// padded appends bytes, and zeros to a multiple of four.
func (p *Writer) padded(b []byte) {
	p.b = append(p.b, b...)
	p.b = append(p.b, make([]byte, (4-len(b)%4)%4)...)
}

func (p *Writer) flush() error {
	_, err := p.w.Write(p.b)
	p.b = p.b[:0]
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	return nil
}
