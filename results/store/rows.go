package store

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"

	"weft/results/record"
	"weft/results/stats"
	"weft/units"
)

// Header lines of the data files. Field names end in their unit.
var (
	flowColumns   = []string{"item", "repeat", "src", "dst", "conn", "message", "bytes", "start_us", "fct_us", "ideal_us", "slowdown"}
	partColumns   = []string{"item", "repeat", "collective", "algorithm", "rank", "host", "start_us", "end_us", "checked", "wrong"}
	queueColumns  = []string{"time_us", "port", "queued_bytes"}
	windowColumns = []string{"time_us", "conn", "cwnd_bytes", "rate_bps"}
	rateColumns   = []string{"time_us", "conn", "bytes", "rate_bps"}
	portColumns   = []string{"port", "packets", "bytes", "drops", "ce_marks", "max_queue_bytes", "lost", "cut", "pauses", "paused_us", "max_headroom_bytes"}
	clockColumns  = []string{"time_us", "host", "error_ns", "bound_ns", "state"}
	barColumns    = []string{"from_us", "to_us", "count"}
)

// Flows adds rows to flows.csv. A flow that did not finish has an empty fct_us and slowdown.
func (r *Run) Flows(rows []record.Flow) error {
	return writeRows(r, FlowsFile, flowColumns, rows, func(f record.Flow) []string {
		fct, slowdown := "", ""
		if f.Finished {
			fct, slowdown = micros(f.FCT), strconv.FormatFloat(f.Slowdown(), 'f', 6, 64)
		}
		return []string{
			strconv.Itoa(f.Item), strconv.Itoa(f.Repeat), f.Src, f.Dst, number(f.Conn), number(f.Message),
			number(f.Size), micros(f.Start), fct, micros(f.Ideal), slowdown,
		}
	})
}

// Parts adds rows to collectives.csv.
func (r *Run) Parts(rows []record.Part) error {
	return writeRows(r, CollectivesFile, partColumns, rows, func(p record.Part) []string {
		return []string{
			strconv.Itoa(p.Item), strconv.Itoa(p.Repeat), p.Collective, p.Algorithm, strconv.Itoa(p.Rank), p.Host,
			micros(p.Start), micros(p.End), number(p.Checked), number(p.Wrong),
		}
	})
}

// Queue adds one sample to queues.csv.
func (r *Run) Queue(q record.Queue) error {
	f := r.table(QueuesFile, queueColumns)
	if r.err != nil {
		return r.err
	}
	b := appendMicros(f.line[:0], q.At)
	b = append(append(append(b, ','), q.Port...), ',')
	f.line = append(strconv.AppendInt(b, int64(q.Queued), 10), '\n')
	return r.keep(f.write(f.line))
}

// Window adds one change to cwnd.csv.
func (r *Run) Window(w record.Window) error {
	f := r.table(WindowsFile, windowColumns)
	if r.err != nil {
		return r.err
	}
	b := append(appendMicros(f.line[:0], w.At), ',')
	b = append(strconv.AppendUint(b, uint64(w.Conn), 10), ',')
	b = append(strconv.AppendInt(b, int64(w.Window), 10), ',')
	f.line = append(strconv.AppendInt(b, int64(w.Rate), 10), '\n')
	return r.keep(f.write(f.line))
}

// Rate adds one sample to rates.csv.
func (r *Run) Rate(s record.Rate) error {
	f := r.table(RatesFile, rateColumns)
	if r.err != nil {
		return r.err
	}
	b := append(appendMicros(f.line[:0], s.At), ',')
	b = append(strconv.AppendUint(b, uint64(s.Conn), 10), ',')
	b = append(strconv.AppendInt(b, int64(s.Bytes), 10), ',')
	f.line = append(strconv.AppendInt(b, int64(s.Rate), 10), '\n')
	return r.keep(f.write(f.line))
}

// Clock adds one sample to clocks.csv. The bound of a host that says none is empty; the state of one on which
// synchronization does not run is down.
func (r *Run) Clock(c record.Clock) error {
	f := r.table(ClocksFile, clockColumns)
	if r.err != nil {
		return r.err
	}
	b := append(appendMicros(f.line[:0], c.At), ',')
	b = append(append(b, c.Host...), ',')
	b = append(appendNanos(b, c.Error), ',')
	if c.State != "free" {
		b = appendNanos(b, c.Bound)
	}
	b = append(b, ',')
	if c.Down {
		c.State = "down"
	}
	f.line = append(append(b, c.State...), '\n')
	return r.keep(f.write(f.line))
}

// Ports adds rows to ports.csv.
func (r *Run) Ports(rows []record.Port) error {
	return writeRows(r, PortsFile, portColumns, rows, func(p record.Port) []string {
		return []string{
			p.Port, number(p.Packets), number(p.Bytes), number(p.Drops), number(p.Marks), number(p.MaxQueue), number(p.Lost),
			number(p.Cut), number(p.Pauses), micros(p.Paused), number(p.MaxHeadroom),
		}
	})
}

// Histogram writes the distribution of a time to a file of its own: RTTFile or QueueDelayFile.
func (r *Run) Histogram(file string, d *stats.Dist) error {
	return writeRows(r, file, barColumns, d.Bars(), func(b stats.Bar) []string {
		return []string{micros(b.From), micros(b.To), number(b.Count)}
	})
}

// Event adds one line to events.jsonl.
func (r *Run) Event(e record.Event) error {
	f := r.table(EventsFile, nil)
	if r.err != nil {
		return r.err
	}
	b, err := json.Marshal(struct {
		At     json.Number `json:"time_us"`
		Kind   string      `json:"event"`
		Where  string      `json:"where,omitempty"`
		Detail string      `json:"detail,omitempty"`
	}{json.Number(micros(e.At)), e.Kind, e.Where, e.Detail})
	if err != nil {
		return r.keep(fmt.Errorf("%s: %w", EventsFile, err))
	}
	return r.keep(f.write(append(b, '\n')))
}

// table returns the named file, created with its header line when this is its first use. r.err says whether
// it can be written.
func (r *Run) table(name string, columns []string) *stream {
	f, ok := r.files[name]
	if ok || r.err != nil {
		return f
	}
	f, err := create(r.dir, name)
	if err != nil {
		r.err = err
		return nil
	}
	r.files[name], r.order = f, append(r.order, name)
	if columns != nil {
		w := csv.NewWriter(f)
		_ = w.Write(columns) // an error stays in w until Error
		w.Flush()
		r.err = w.Error()
	}
	return f
}

// writeRows adds rows to the named table.
func writeRows[T any](r *Run, name string, columns []string, rows []T, fields func(T) []string) error {
	f := r.table(name, columns)
	if r.err != nil {
		return r.err
	}
	w := csv.NewWriter(f)
	for _, row := range rows {
		if err := w.Write(fields(row)); err != nil {
			return r.keep(err)
		}
	}
	w.Flush()
	return r.keep(w.Error())
}

// keep makes the first error stick.
func (r *Run) keep(err error) error {
	if r.err == nil {
		r.err = err
	}
	return r.err
}

func number[T ~int64 | ~uint32](n T) string { return strconv.FormatInt(int64(n), 10) }

// micros writes t in microseconds with all its six decimals, so that nothing is rounded and equal times are
// equal text.
func micros(t units.Time) string { return string(appendMicros(nil, t)) }

func appendMicros(b []byte, t units.Time) []byte {
	if t < 0 {
		b, t = append(b, '-'), -t
	}
	b = append(strconv.AppendInt(b, int64(t/units.Microsecond), 10), '.')
	part := strconv.Itoa(int(units.Microsecond + t%units.Microsecond)) // 1 and six digits
	return append(b, part[1:]...)
}

// appendNanos writes a time in nanoseconds with three decimals.
func appendNanos(b []byte, t units.Time) []byte {
	if t < 0 {
		b, t = append(b, '-'), -t
	}
	b = append(strconv.AppendInt(b, int64(t/units.Nanosecond), 10), '.')
	part := strconv.Itoa(int(units.Nanosecond + t%units.Nanosecond)) // 1 and three digits
	return append(b, part[1:]...)
}
