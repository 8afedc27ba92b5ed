package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"weft/results/record"
	"weft/results/stats"
	"weft/units"
)

// Flows adds rows to flows.parquet. A flow that did not finish has no fct_ps and no slowdown.
func (r *Run) Flows(rows []record.Flow) error {
	return each(r, FlowsFile, rows, func(f record.Flow) flowRow {
		row := flowRow{
			Item: int32(f.Item), Repeat: int32(f.Repeat), Src: f.Src, Dst: f.Dst, Conn: int64(f.Conn), Message: int64(f.Message),
			Bytes: int64(f.Size), Start: int64(f.Start), Ideal: int64(f.Ideal),
		}
		if f.Finished {
			row.FCT, row.Slowdown = int64(f.FCT), f.Slowdown()
		}
		return row
	})
}

// Parts adds rows to collectives.parquet.
func (r *Run) Parts(rows []record.Part) error {
	return each(r, CollectivesFile, rows, func(p record.Part) partRow {
		return partRow{
			Item: int32(p.Item), Repeat: int32(p.Repeat), Collective: p.Collective, Algorithm: p.Algorithm, Rank: int32(p.Rank),
			Host: p.Host, Start: int64(p.Start), End: int64(p.End), Checked: p.Checked, Wrong: p.Wrong,
		}
	})
}

// Ports adds rows to ports.parquet.
func (r *Run) Ports(rows []record.Port) error {
	return each(r, PortsFile, rows, func(p record.Port) portRow {
		return portRow{
			Port: p.Port, Packets: p.Packets, Bytes: int64(p.Bytes), Drops: p.Drops, Marks: p.Marks, MaxQueue: int64(p.MaxQueue),
			Lost: p.Lost, Cut: p.Cut, Pauses: p.Pauses, Paused: int64(p.Paused), MaxHeadroom: int64(p.MaxHeadroom), Rate: int64(p.Rate),
		}
	})
}

// Histogram writes the distribution of a time to a file of its own: RTTFile or QueueDelayFile.
func (r *Run) Histogram(file string, d *stats.Dist) error {
	return each(r, file, d.Bins(), func(b stats.Bin) barRow { return barRow{int64(b.From), int64(b.To), b.Count} })
}

// Queue adds one sample to queues.parquet.
func (r *Run) Queue(q record.Queue) error {
	return one(r, QueuesFile, queueRow{int64(q.At), q.Port, int64(q.Queued), q.Marks, q.Drops})
}

// Window adds one change to cwnd.parquet.
func (r *Run) Window(w record.Window) error {
	return one(r, WindowsFile, windowRow{int64(w.At), int64(w.Conn), int64(w.Window), int64(w.Rate)})
}

// Ack adds one acknowledgement to acks.parquet.
func (r *Run) Ack(a record.Ack) error {
	return one(r, AcksFile, ackRow{int64(a.At), int64(a.Conn), int64(a.RTT), a.Marked})
}

// Rate adds one sample to rates.parquet.
func (r *Run) Rate(s record.Rate) error {
	return one(r, RatesFile, rateRow{int64(s.At), int64(s.Conn), int64(s.Bytes), int64(s.Rate)})
}

// Clock adds one sample to clocks.parquet. The bound of a host that says none is null; the state of one on which
// synchronization does not run is down.
func (r *Run) Clock(c record.Clock) error {
	row := clockRow{Time: int64(c.At), Host: c.Host, Error: int64(c.Error), State: c.State}
	if c.State != "free" {
		row.Bound = int64(c.Bound)
	}
	if c.Down {
		row.State = "down"
	}
	return one(r, ClocksFile, row)
}

// Event adds one line to events.jsonl.
func (r *Run) Event(e record.Event) error {
	l, ok := r.files[EventsFile].(*lines)
	if !ok && r.err == nil {
		f, err := os.OpenFile(filepath.Join(r.dir, EventsFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return r.keep(err)
		}
		l = &lines{f}
		r.hold(EventsFile, l)
	}
	if r.err != nil {
		return r.err
	}
	b, err := json.Marshal(struct {
		At     json.Number `json:"time_us"`
		Kind   string      `json:"event"`
		Where  string      `json:"where,omitempty"`
		Detail string      `json:"detail,omitempty"`
	}{json.Number(micros(e.At)), e.Kind, e.Where, e.Detail})
	if err == nil {
		_, err = l.file.Write(append(b, '\n'))
	}
	if err != nil {
		return r.keep(fmt.Errorf("%s: %w", EventsFile, err))
	}
	return nil
}

// tableOf returns the named table, created when this is its first use; nil if it cannot be written, which r.err says.
func tableOf[T any](r *Run, name string) *table[T] {
	if r.err != nil {
		return nil
	}
	if t, ok := r.files[name].(*table[T]); ok {
		return t
	}
	t, err := createTable[T](r.dir, name, r.live)
	if err != nil {
		r.err = err
		return nil
	}
	r.hold(name, t)
	return t
}

func (r *Run) hold(name string, s stream) { r.files[name], r.order = s, append(r.order, name) }

func one[T any](r *Run, name string, row T) error {
	if t := tableOf[T](r, name); t != nil {
		r.err = t.add(row)
	}
	return r.err
}

func each[R, T any](r *Run, name string, rows []R, to func(R) T) error {
	t := tableOf[T](r, name)
	for i := 0; i < len(rows) && r.err == nil; i++ {
		r.err = t.add(to(rows[i]))
	}
	return r.err
}

// keep makes the first error stick.
func (r *Run) keep(err error) error {
	if r.err == nil {
		r.err = err
	}
	return r.err
}

// micros writes t in microseconds with all its six decimals, so that nothing is rounded and equal times are
// equal text.
func micros(t units.Time) string {
	sign := ""
	if t < 0 {
		sign, t = "-", -t
	}
	part := strconv.Itoa(int(units.Microsecond + t%units.Microsecond)) // 1 and six digits
	return sign + strconv.FormatInt(int64(t/units.Microsecond), 10) + "." + part[1:]
}
