package view

import (
	"encoding/base64"
	"encoding/binary"
	"math"

	"weft/results/frames"
	"weft/units"
)

// columns are frames as columns for the page: base64 of little-endian values. In first, element i
// is the number of rows before frame i.
type columns struct {
	Count  int          `json:"count"`
	At     string       `json:"at"` // microseconds, float64
	First  string       `json:"first"`
	Port   string       `json:"port"`
	Queued string       `json:"queued"`
	Sent   string       `json:"sent"` // float64
	Marks  string       `json:"marks"`
	Drops  string       `json:"drops"`
	Paused string       `json:"paused"`
	Conns  *connColumns `json:"conns,omitempty"`
}

type connColumns struct {
	First   string `json:"first"`
	Conn    string `json:"conn"`
	Arrived string `json:"arrived"` // float64
	Window  string `json:"window"`
}

// column collects the values of a column.
type column []byte

func (c *column) u32(v int64) {
	*c = binary.LittleEndian.AppendUint32(*c, uint32(min(max(v, 0), math.MaxUint32)))
}

func (c *column) f64(v float64) { *c = binary.LittleEndian.AppendUint64(*c, math.Float64bits(v)) }

func (c *column) flag(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	*c = append(*c, b)
}

func (c column) String() string { return base64.StdEncoding.EncodeToString(c) }

// newColumns returns frames as columns. Rows of ports from which the network has none are left out:
// files may hold anything.
func newColumns(all []frames.Frame, ports int) columns {
	var at, first, port, queued, sent, marks, drops, paused column
	var connFirst, conn, arrived, window column
	rows, connRows := int64(0), int64(0)
	for i := range all {
		f := &all[i]
		at.f64(f.At.Microseconds())
		first.u32(rows)
		connFirst.u32(connRows)
		for _, p := range f.Ports {
			if int(p.Port) >= ports || p.Port < 0 {
				continue
			}
			rows++
			port.u32(int64(p.Port))
			queued.u32(int64(p.Queued))
			sent.f64(float64(p.Sent))
			marks.u32(p.Marks)
			drops.u32(p.Drops)
			paused.flag(p.Paused)
		}
		for _, c := range f.Conns {
			connRows++
			conn.u32(int64(c.Conn))
			arrived.f64(float64(c.Arrived))
			window.u32(int64(c.Window))
		}
	}
	first.u32(rows)
	connFirst.u32(connRows)
	c := columns{
		Count: len(all), At: at.String(), First: first.String(), Port: port.String(), Queued: queued.String(),
		Sent: sent.String(), Marks: marks.String(), Drops: drops.String(), Paused: paused.String(),
	}
	if connRows > 0 {
		c.Conns = &connColumns{
			First: connFirst.String(), Conn: conn.String(), Arrived: arrived.String(), Window: window.String(),
		}
	}
	return c
}

// micros returns picoseconds of a file in microseconds.
func micros(ps int64) float64 { return units.Time(ps).Microseconds() }
