package agent

import (
	"fmt"

	clocks "weft/clocksync/node"
	"weft/host"
	"weft/internal/control"
	"weft/transport"
)

// Rows are a part of a node's results. The number of flows or of samples of a clock grows with the
// length of a run, and a message has a limit, so these come in several messages.
type Rows struct {
	Flows    []host.Flow          `json:",omitempty"`
	Dones    []host.Done          `json:",omitempty"`
	TimedOut []transport.TimedOut `json:",omitempty"`
	Windows  []Window             `json:",omitempty"`
	Steps    []Step               `json:",omitempty"`
	Samples  []byte               `json:",omitempty"` // of Results.Clock: see clocks.AppendSamples
}

// Sizes of a message of Rows, ours: below 4 MB of JSON, a sixteenth of control.MaxBody.
const (
	maxRows    = 1 << 13 // of each kind of row but samples
	maxSamples = 1 << 17 // at most 32 bytes each, 43 in JSON; usually 10
)

// MaxResults is the maximum size of all Rows of a node in bytes of JSON. Ours: a clock's samples of
// five minutes at the default interval, 10 us.
const MaxResults = 512 << 20

// send sends the results in pieces. It empties r.
func (r *Results) send(conn *control.Conn) error {
	for {
		rows, more := r.cut()
		if !more {
			break
		}
		if err := conn.SendValue(KindRows, rows); err != nil {
			return err
		}
	}
	return conn.SendValue(KindResults, r)
}

// cut removes up to maxRows of each kind of row from r. more is false if there are none.
func (r *Results) cut() (rows Rows, more bool) {
	rows.Flows, r.Flows = head(r.Flows, maxRows)
	rows.Dones, r.Dones = head(r.Dones, maxRows)
	rows.TimedOut, r.TimedOut = head(r.TimedOut, maxRows)
	rows.Windows, r.Windows = head(r.Windows, maxRows)
	rows.Steps, r.Steps = head(r.Steps, maxRows)
	n := len(rows.Flows) + len(rows.Dones) + len(rows.TimedOut) + len(rows.Windows) + len(rows.Steps)
	if r.Clock != nil {
		var samples []clocks.Sample
		samples, r.Clock.Samples = head(r.Clock.Samples, maxSamples)
		rows.Samples = clocks.AppendSamples(nil, samples)
		n += len(samples)
	}
	return rows, n > 0
}

// head splits s after n elements. Without a rest, rest is nil.
func head[T any](s []T, n int) (first, rest []T) {
	if len(s) <= n {
		return s, nil
	}
	return s[:n:n], s[n:]
}

// Append adds rows that came before the results. Samples make a Clock without anything else, until
// Complete.
func (r *Results) Append(rows *Rows) error {
	r.Flows = append(r.Flows, rows.Flows...)
	r.Dones = append(r.Dones, rows.Dones...)
	r.TimedOut = append(r.TimedOut, rows.TimedOut...)
	r.Windows = append(r.Windows, rows.Windows...)
	r.Steps = append(r.Steps, rows.Steps...)
	if len(rows.Samples) == 0 {
		return nil
	}
	samples, err := clocks.DecodeSamples(rows.Samples)
	if err != nil {
		return err
	}
	if r.Clock == nil {
		r.Clock = new(clocks.Report)
	}
	r.Clock.Samples = append(r.Clock.Samples, samples...)
	return nil
}

// Complete adds to the collected rows the results that came last.
func (r *Results) Complete(last *Results) error {
	rows := *r
	*r = *last
	r.Flows = append(rows.Flows, last.Flows...)
	r.Dones = append(rows.Dones, last.Dones...)
	r.TimedOut = append(rows.TimedOut, last.TimedOut...)
	r.Windows = append(rows.Windows, last.Windows...)
	r.Steps = append(rows.Steps, last.Steps...)
	switch {
	case rows.Clock == nil:
	case r.Clock == nil:
		return fmt.Errorf("%d samples of a clock, and no report of it", len(rows.Clock.Samples))
	default:
		r.Clock.Samples = append(rows.Clock.Samples, last.Clock.Samples...)
	}
	return nil
}
