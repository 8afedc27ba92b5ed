package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"weft/results/record"
	"weft/results/stats"
	"weft/units"
)

// Flows appends rows to flows.parquet. fct_ps and slowdown of an unfinished flow are null.
func (r *Run) Flows(rows []record.Flow) error {
	return addRows(r, FlowsFile, rows, func(f record.Flow) flowRow {
		row := flowRow{
			Item: int32(f.Item), Repeat: int32(f.Repeat), Src: f.Src, Dst: f.Dst, Conn: int64(f.Conn),
			Message: int64(f.Message), Bytes: int64(f.Size), Start: int64(f.Start), Ideal: int64(f.Ideal),
		}
		if f.Finished {
			row.FCT, row.Slowdown = int64(f.FCT), f.Slowdown()
		}
		return row
	})
}

// Parts appends rows to collectives.parquet.
func (r *Run) Parts(rows []record.Part) error {
	return addRows(r, CollectivesFile, rows, func(p record.Part) partRow {
		return partRow{
			Item: int32(p.Item), Repeat: int32(p.Repeat), Collective: p.Collective, Algorithm: p.Algorithm,
			Rank: int32(p.Rank), Host: p.Host, Start: int64(p.Start), End: int64(p.End), Checked: p.Checked,
			Wrong: p.Wrong,
		}
	})
}

// Metrics appends rows to metrics.parquet.
func (r *Run) Metrics(rows []record.MetricRow) error {
	return addRows(r, MetricsFile, rows, func(m record.MetricRow) metricRow {
		return metricRow{Item: int32(m.Item), Host: m.Host, Line: int64(m.Line), Time: int64(m.At), Name: m.Name,
			Text: m.Text, Value: m.Value}
	})
}

// Ports writes ports.parquet. It has the column trims if any port trimmed a packet.
func (r *Run) Ports(rows []record.Port) error {
	if slices.ContainsFunc(rows, func(p record.Port) bool { return p.Trims > 0 }) {
		return addRows(r, PortsFile, rows, func(p record.Port) trimRow { return trimRow{rowOfPort(p), p.Trims} })
	}
	return addRows(r, PortsFile, rows, rowOfPort)
}

func rowOfPort(p record.Port) portRow {
	return portRow{
		Port: p.Port, Packets: p.Packets, Bytes: int64(p.Bytes), Drops: p.Drops, Marks: p.Marks,
		MaxQueue: int64(p.MaxQueue), Lost: p.Lost, Cut: p.Cut, Pauses: p.Pauses, Paused: int64(p.Paused),
		MaxHeadroom: int64(p.MaxHeadroom), Rate: int64(p.Rate),
	}
}

// Histogram writes the distribution of a time, a row for each step that has values. file is RTTFile
// or QueueDelayFile.
func (r *Run) Histogram(file string, d *stats.Dist) error {
	return addRows(r, file, d.Bins(), func(b stats.Bin) barRow { return barRow{int64(b.From), int64(b.To), b.Count} })
}

// Queue appends a sample to queues.parquet.
func (r *Run) Queue(q record.Queue) error {
	return addRow(r, QueuesFile, queueRow{int64(q.At), q.Port, int64(q.Queued), q.Marks, q.Drops})
}

// Window appends a change to cwnd.parquet.
func (r *Run) Window(w record.Window) error {
	row := windowRow{Time: int64(w.At), Conn: int64(w.Conn), Window: int64(w.Window), Rate: int64(w.Rate)}
	if w.Credited {
		row.Credit = (*int64)(&w.Credit)
	}
	return addRow(r, WindowsFile, row)
}

// Ack appends an acknowledgement to acks.parquet.
func (r *Run) Ack(a record.Ack) error {
	return addRow(r, AcksFile, ackRow{int64(a.At), int64(a.Conn), int64(a.RTT), a.Marked})
}

// Rate appends a sample to rates.parquet.
func (r *Run) Rate(s record.Rate) error {
	return addRow(r, RatesFile, rateRow{int64(s.At), int64(s.Conn), int64(s.Bytes), int64(s.Rate)})
}

// Clock appends a sample to clocks.parquet. The bound is null if the host reports none, and the
// state is down if synchronization does not run on it.
func (r *Run) Clock(c record.Clock) error {
	row := clockRow{Time: int64(c.At), Host: c.Host, Error: int64(c.Error), State: c.State}
	if c.State != "free" {
		row.Bound = int64(c.Bound)
	}
	if c.Down {
		row.State = "down"
	}
	return addRow(r, ClocksFile, row)
}

// Event appends a line to events.jsonl: a JSON object with time_us, event, where and detail.
func (r *Run) Event(e record.Event) error {
	l, ok := r.files[EventsFile].(*eventLog)
	if !ok && r.err == nil {
		f, err := os.OpenFile(filepath.Join(r.dir, EventsFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return r.fail(err)
		}
		l = &eventLog{f}
		r.addStream(EventsFile, l)
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
		return r.fail(fmt.Errorf("%s: %w", EventsFile, err))
	}
	return nil
}

// tableOf returns the named table, and creates it on first use. It is nil after an error, which is
// in r.err.
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
	r.addStream(name, t)
	return t
}

// addStream adds a data file to the run.
func (r *Run) addStream(name string, s stream) { r.files[name], r.order = s, append(r.order, name) }

// addRow appends one row to a data file. After an error it does nothing and returns that error.
func addRow[T any](r *Run, name string, row T) error {
	if t := tableOf[T](r, name); t != nil {
		r.err = t.add(row)
	}
	return r.err
}

// addRows appends rows to a data file, converted by to. After an error it does nothing and returns
// that error.
func addRows[R, T any](r *Run, name string, rows []R, to func(R) T) error {
	t := tableOf[T](r, name)
	for i := 0; i < len(rows) && r.err == nil; i++ {
		r.err = t.add(to(rows[i]))
	}
	return r.err
}

// fail keeps the first error, and returns it.
func (r *Run) fail(err error) error {
	if r.err == nil {
		r.err = err
	}
	return r.err
}

// micros formats t in microseconds with all six decimals, so that nothing is rounded and equal
// times are equal text.
func micros(t units.Time) string {
	sign := ""
	if t < 0 {
		sign, t = "-", -t
	}
	// The 1 in front keeps the leading zeros of the six digits, and is cut off.
	part := strconv.Itoa(int(units.Microsecond + t%units.Microsecond))
	return sign + strconv.FormatInt(int64(t/units.Microsecond), 10) + "." + part[1:]
}
