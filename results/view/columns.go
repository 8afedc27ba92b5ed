package view

import (
	"encoding/base64"
	"encoding/binary"

	"weft/results/frames"
	"weft/units"
)

// packed are frames for the page: base64 of unsigned varints. Counters and instants are differences
// to their last value, so most numbers take a byte or two, and the page needs no compression.
//
//	Rows:  for each frame: picoseconds since the frame before, rows; for each row: port since the
//	       row before * 16 + flags, then for each flag set, in this order, its number: 1 queued,
//	       2 marks, 4 drops (8 paused has none), and then the bytes sent
//	Conns: for each frame: rows; for each row: connection since the row before, bytes, window
type packed struct {
	Count int    `json:"count"`
	Rows  string `json:"rows,omitempty"`
	Conns string `json:"conns,omitempty"` // empty: there are none
}

// Flags of a row. A number that is 0 is left out.
const (
	hasQueued = 1 << iota
	hasMarks
	hasDrops
	isPaused
	portStep // the difference of ports begins here
)

// pack returns frames for the page. Rows of ports that the network does not have are left out, and
// counters that go back stay: files may hold anything.
func pack(all []frames.Frame, ports int) packed {
	rows := 0
	for i := range all {
		rows += len(all[i].Ports)
	}
	out, conns := make([]byte, 0, 6*rows+16*len(all)), []byte(nil)
	last := make([]frames.Port, ports)
	var known []frames.Conn // by connection
	var at units.Time
	connRows := 0
	for i := range all {
		f := &all[i]
		out = binary.AppendUvarint(out, uint64(max(f.At-at, 0)))
		at = max(at, f.At)
		n := 0
		for k := range f.Ports {
			if inRange(f.Ports[k].Port, ports) {
				n++
			}
		}
		out = binary.AppendUvarint(out, uint64(n))
		before := 0
		for k := range f.Ports {
			if p := &f.Ports[k]; inRange(p.Port, ports) {
				out = appendPort(out, p, &last[p.Port], int(p.Port)-before)
				before = int(p.Port)
			}
		}
		n = 0
		for _, c := range f.Conns {
			if c.Conn < MaxConns {
				n++
			}
		}
		conns = binary.AppendUvarint(conns, uint64(n))
		connRows += n
		before = 0
		for _, c := range f.Conns {
			if c.Conn >= MaxConns {
				continue
			}
			if n := int(c.Conn) + 1; n > len(known) {
				known = append(known, make([]frames.Conn, n-len(known))...)
			}
			was := &known[c.Conn]
			c.Window = max(c.Window, 0)
			now := was.Then(c)
			conns = binary.AppendUvarint(conns, uint64(int(c.Conn)-before))
			conns = binary.AppendUvarint(conns, uint64(now.Arrived-was.Arrived))
			conns = binary.AppendUvarint(conns, uint64(now.Window))
			before, *was = int(c.Conn), now
		}
	}
	p := packed{Count: len(all), Rows: base64.StdEncoding.EncodeToString(out)}
	if connRows > 0 {
		p.Conns = base64.StdEncoding.EncodeToString(conns)
	}
	return p
}

// inRange reports whether the network has a port.
func inRange(port int32, ports int) bool { return port >= 0 && int(port) < ports }

// appendPort appends a row, whose port follows the row before by step, and makes it the last of its
// port.
func appendPort(out []byte, p, last *frames.Port, step int) []byte {
	values := [...]int64{int64(p.Queued), p.Marks - last.Marks, p.Drops - last.Drops}
	head := uint64(step) * portStep
	for i, v := range values {
		if v > 0 {
			head |= hasQueued << i
		}
	}
	if p.Paused {
		head |= isPaused
	}
	out = binary.AppendUvarint(out, head)
	for _, v := range values {
		if v > 0 {
			out = binary.AppendUvarint(out, uint64(v))
		}
	}
	out = binary.AppendUvarint(out, uint64(max(p.Sent-last.Sent, 0)))
	last.Sent, last.Marks, last.Drops = max(p.Sent, last.Sent), max(p.Marks, last.Marks), max(p.Drops, last.Drops)
	return out
}
