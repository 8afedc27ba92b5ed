package report

import (
	"weft/results/plot"
	"weft/results/store"
)

// Acks draws one point for each acknowledgement: the round trip of the packet that caused it, and
// whether that packet was ECN-marked.
func (r *Run) Acks() (Figure, error) {
	type row struct {
		Time   int64 `parquet:"time_ps"`
		RTT    int64 `parquet:"rtt_ps"`
		Marked bool  `parquet:"ce"`
	}
	marked := plot.Series{Name: "marked", NoLine: true, Points: true}
	free := plot.Series{Name: "not marked", NoLine: true, Points: true}
	err := store.Scan(r.Dir, store.AcksFile, func(rows []row) error {
		for _, a := range rows {
			s := &free
			if a.Marked {
				s = &marked
			}
			s.X, s.Y = append(s.X, float64(a.Time)/1e6), append(s.Y, float64(a.RTT)/1e6)
		}
		return nil
	})
	f := Figure{"acks", plot.Chart{
		Title: "Round trips of acknowledged packets", X: timeAxis(),
		Y: plot.Axis{Label: "round trip", Unit: "us", Zero: true},
	}}
	for _, s := range []plot.Series{marked, free} {
		if len(s.X) > 0 {
			f.Series = append(f.Series, s)
		}
	}
	return f, err
}

// Jobs returns the distribution of the completion times of collectives, each repetition and each
// group of ranks by itself, from the first rank's start to the last rank's end, in microseconds.
func Jobs(dir, name string) (plot.Series, error) {
	type row struct {
		Item   int32 `parquet:"item"`
		Repeat int32 `parquet:"repeat"`
		Start  int64 `parquet:"start_ps"`
		End    int64 `parquet:"end_ps"`
	}
	type job struct{ item, repeat int32 }
	type span struct{ first, last int64 }
	spans := map[job]span{}
	var order []job
	err := store.Scan(dir, store.CollectivesFile, func(rows []row) error {
		for _, p := range rows {
			j := job{p.Item, p.Repeat}
			s, seen := spans[j]
			if !seen {
				s, order = span{p.Start, p.End}, append(order, j)
			}
			spans[j] = span{min(s.first, p.Start), max(s.last, p.End)}
		}
		return nil
	})
	values := make([]float64, len(order))
	for i, j := range order {
		values[i] = float64(spans[j].last-spans[j].first) / 1e6
	}
	return plot.CDF(name, values), err
}
