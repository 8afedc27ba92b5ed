package benchmark

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weft/collectives/bench"
	"weft/internal/plural"
	"weft/results/record"
	"weft/results/table"
	"weft/units"
)

// Result is the table of one benchmark run.
type Result struct {
	Of        *Measured
	Transport string
	Network   string          // its description
	Link      units.Bandwidth // rate of the hosts' links
	Engine    string          // as requested
	Notes     []string        // see Notes
	Skipped   []string        // see Skipped

	Summary *record.Summary // nil if it was not run
	Rows    []bench.Row
	Err     error
}

// Table returns the table in the style of nccl-tests: title, rows and sums.
func (r *Result) Table() string {
	var b strings.Builder
	m := r.Of
	fmt.Fprintf(&b, "# weft bench: %s, %d ranks, transport %s, %s\n", m.Title(), m.Specs[0].Ranks, r.Transport,
		r.Network)
	if s := r.Summary; s != nil {
		fmt.Fprintf(&b, "# engine %s", s.Engine)
		if s.Engine == "emu" {
			fmt.Fprintf(&b, ", dilation %.15g", s.Dilation)
		}
		if text := cmp.Or(table.Doubt(s), "fidelity "+s.Outcome().Fidelity); s.Outcome().Fidelity != "" {
			fmt.Fprintf(&b, ", %s", text)
		}
		fmt.Fprintf(&b, ", seed %d, %.1f s of wall time, %s\n", s.Seed, s.WallS, s.Run)
	}
	fmt.Fprintf(&b, "# %s; of each %s\n", m.sizes(), m.repeats())
	if n := len(m.Skipped); n > 0 {
		fmt.Fprintf(&b, "# left out: %s too small to give each rank something\n", plural.Count(n, "size"))
	}
	for _, text := range r.Notes {
		fmt.Fprintf(&b, "# note: %s\n", text)
	}
	b.WriteString(bench.Table(r.Rows))
	if text := r.inGbps(); text != "" {
		fmt.Fprintf(&b, "# %s\n#\n", text)
	}
	if missing := r.missing(); missing > 0 {
		fmt.Fprintf(&b, "# %s not measured: the run ended before\n#\n", plural.Count(missing, "size"))
	}
	if r.Summary != nil {
		for _, text := range r.Summary.Warnings { // for example which rank's data is wrong since which step
			fmt.Fprintf(&b, "# warning: %s\n", text)
		}
	}
	for _, text := range slices.Concat(r.doubts(), prefixed("skipped: ", r.Skipped)) {
		fmt.Fprintf(&b, "# %s\n", text)
	}
	return b.String()
}

// doubts returns what weft run prints of a fidelity that is not ok: how late the run was, further
// reasons, and what to do.
func (r *Result) doubts() (doubts []string) {
	if r.Summary == nil || !r.Summary.Outcome().Doubtful() {
		return nil
	}
	for _, row := range table.Trust(r.Summary) {
		doubts = append(doubts, cmp.Or(row.Name, "reason")+": "+row.Text)
	}
	return doubts
}

// prefixed returns texts behind a prefix each.
func prefixed(prefix string, texts []string) (all []string) {
	for _, text := range texts {
		all = append(all, prefix+text)
	}
	return all
}

// sizes describes the measured sizes: "3 sizes, 1KiB to 1MiB".
func (m *Measured) sizes() string {
	first, last := m.Specs[0].Size, m.Specs[len(m.Specs)-1].Size
	if first == last {
		return "size " + first.String()
	}
	return fmt.Sprintf("%s, %s to %s", plural.Count(len(m.Specs), "size"), first, last)
}

// repeats describes how often each size is measured.
func (m *Measured) repeats() string {
	least, most := slices.Min(m.Iterations), slices.Max(m.Iterations)
	n := plural.Count(most, "measured iteration")
	if least < most {
		n = fmt.Sprintf("%d to %s", least, n)
	}
	return fmt.Sprintf("%d to warm up and %s", m.Warmup, n)
}

// inGbps returns the mean bus bandwidth and the highest one next to the link rate, in Gb/s like
// everything else; "" without rows.
func (r *Result) inGbps() string {
	if len(r.Rows) == 0 {
		return ""
	}
	best, mean := r.Rows[0], 0.0
	for _, row := range r.Rows {
		mean += gbps(row.OutOfPlace.Bus) / float64(len(r.Rows))
		if row.OutOfPlace.Bus > best.OutOfPlace.Bus {
			best = row
		}
	}
	text := fmt.Sprintf("%-20s : %.4g on average, %.4g at best (%s)", "busbw in Gb/s", mean,
		gbps(best.OutOfPlace.Bus), best.Size)
	if r.Link > 0 {
		text += "; links are of " + r.Link.String()
	}
	return text
}

func gbps(b units.Bandwidth) float64 { return float64(b) / 1e9 }

// missing returns the number of sizes that were not measured.
func (r *Result) missing() int { return len(r.Of.Specs) - len(r.Rows) }

// JSON is the machine-readable table. Times and bandwidths are in lab time.
type JSON struct {
	Run        string  `json:"run,omitempty"`
	Collective string  `json:"collective"`
	Algorithm  string  `json:"algorithm"`
	Transport  string  `json:"transport"`
	Ranks      int     `json:"ranks"`
	Engine     string  `json:"engine"`
	Dilation   float64 `json:"dilation"`
	Fidelity   string  `json:"fidelity,omitempty"`
	Status     string  `json:"status"`
	Error      string  `json:"error,omitempty"`
	// Verified: every rank finished every collective, and its data was compared and is right.
	Verified bool     `json:"verified"`
	Warnings []string `json:"warnings,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	Skipped  []string `json:"skipped,omitempty"` // expectations, which a benchmark does not judge
	// Doubts are of an emulation: how late it was, further reasons, and what to do; absent if its
	// fidelity is ok.
	Doubts []string `json:"doubts,omitempty"`
	// Caveats are about all runs of the benchmark together; only the last object has them.
	Caveats []string  `json:"caveats,omitempty"`
	Warmup  int       `json:"warmup_iterations"`
	Rows    []RowJSON `json:"rows"`
	Missing int       `json:"missing"` // sizes that were not measured
	// Rows with wrong elements; absent if none is wrong and the data of some was not compared.
	Wrong   *int     `json:"out_of_bounds,omitempty"`
	BusBW   *float64 `json:"avg_busbw_gb_per_s,omitempty"` // absent without rows
	BusGbps *float64 `json:"avg_busbw_gbps,omitempty"`     // absent without rows
	WallS   float64  `json:"wall_s"`
}

// RowJSON is a row of JSON: bandwidths in GB/s, as in nccl-tests, and in Gb/s.
type RowJSON struct {
	Size       int64   `json:"size_bytes"`
	Count      int64   `json:"count"`
	Type       string  `json:"type"`
	Op         string  `json:"redop"`
	Root       int     `json:"root"`
	Iterations int     `json:"iterations"`
	TimeUS     float64 `json:"time_us"`
	AlgBW      float64 `json:"algbw_gb_per_s"`
	BusBW      float64 `json:"busbw_gb_per_s"`
	AlgGbps    float64 `json:"algbw_gbps"`
	BusGbps    float64 `json:"busbw_gbps"`
	Wrong      *int64  `json:"wrong,omitempty"` // absent if not checked
	Checked    bool    `json:"checked"`
}

// JSON returns the machine-readable table.
func (r *Result) JSON() JSON {
	j := JSON{
		Collective: r.Of.Collective, Algorithm: r.Of.Algorithm, Transport: r.Transport, Ranks: r.Of.Specs[0].Ranks,
		Engine: r.Engine, Status: record.Failed, Warmup: r.Of.Warmup, Rows: []RowJSON{}, Missing: r.missing(),
		Notes: r.Notes, Skipped: r.Skipped, Doubts: r.doubts(),
	}
	if s := r.Summary; s != nil {
		j.Run, j.Engine, j.Dilation, j.Status, j.Error, j.WallS = s.Run, s.Engine, s.Dilation, s.Status, s.Error,
			s.WallS
		j.Verified, j.Warnings = s.Verified, s.Warnings
		j.Fidelity = s.Outcome().Fidelity
	}
	if r.Err != nil {
		j.Verified = false
		j.Error = cmp.Or(j.Error, r.Err.Error())
		if j.Status == record.OK {
			j.Status = record.Failed // the run succeeded, but its sizes cannot be told apart
		}
	}
	for i, row := range r.Rows {
		m := row.OutOfPlace
		out := RowJSON{
			Size: int64(row.Size), Count: row.Count, Type: row.Type, Op: row.Op, Root: row.Root,
			Iterations: r.Of.Iterations[i],
			TimeUS:     m.Time.Microseconds(), AlgBW: bench.GBps(m.Alg), BusBW: bench.GBps(m.Bus), AlgGbps: gbps(m.Alg),
			BusGbps: gbps(m.Bus),
			Checked: m.Checked,
		}
		if m.Checked {
			out.Wrong = &m.Wrong
		}
		j.Rows = append(j.Rows, out)
	}
	j.average()
	return j
}

// average sets what is about all rows, as far as it was measured.
func (j *JSON) average() {
	n, checked, wrong, bus, gbps := float64(len(j.Rows)), 0, 0, 0.0, 0.0
	for _, row := range j.Rows {
		bus, gbps = bus+row.BusBW/n, gbps+row.BusGbps/n
		if row.Checked {
			checked++
		}
		if row.Checked && *row.Wrong > 0 {
			wrong++
		}
	}
	if len(j.Rows) > 0 {
		j.BusBW, j.BusGbps = &bus, &gbps
	}
	if wrong > 0 || checked == len(j.Rows) && checked > 0 {
		j.Wrong = &wrong
	}
}
