package benchmark

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"weft/collectives/bench"
	"weft/collectives/schedule"
	"weft/collectives/trace"
	"weft/units"
)

// Request describes a measurement.
type Request struct {
	Collectives []string // of schedule.Collectives
	Algorithms  []string // auto, all, or names of schedule.Algorithms; a collective is measured with those that it has
	Ranks       int      // at least 2
	Sizes       bench.Sizes
	Iterations  int // counted repetitions of each size; 0: depends on the size, see Iterations
	Warmup      int // repetitions before them
	Type        schedule.Type
	Op          schedule.Reduction
	Root        int         // root rank of rooted collectives, below Ranks
	Chunk       units.Bytes // 0: the algorithm's default
	// concurrent peers of windowed algorithms; 0: 16, or no limit where the algorithm needs none
	Parallel int
	Group    int // ranks per group of hierarchical; 0: the largest of 8, 4 and 2 that divides Ranks
}

// Bounds of a request. Our own values.
const (
	maxIterations = 100_000
	maxLines      = 1000 // sizes
)

// Iterations returns the default number of repetitions of a size: 20 as in nccl-tests, or above 1
// MiB as many as add up to 20 MiB, at least 2. The simulator is deterministic, and emulation is
// slow.
func Iterations(size units.Bytes) int {
	return int(max(2, min(20, 20*units.MiB/max(1, size))))
}

// Measured is a collective with one algorithm. It has a table for each transport.
type Measured struct {
	Collective, Algorithm string

	Specs      []schedule.Spec // by size
	Iterations []int           // by size
	Warmup     int
	Skipped    []units.Bytes // sizes that are too small for every rank to get data
}

// Measure returns the measurements of a request. An error names the wrong option.
func (r *Request) Measure() ([]Measured, error) {
	switch {
	case r.Ranks < 2:
		return nil, fmt.Errorf("%d ranks; at least 2 are needed", r.Ranks)
	case r.Iterations < 0 || r.Iterations > maxIterations || r.Warmup < 0 || r.Warmup > maxIterations:
		return nil, fmt.Errorf("%d iterations after %d; expected up to %d", r.Iterations, r.Warmup, maxIterations)
	case r.Root < 0 || r.Root >= r.Ranks:
		return nil, fmt.Errorf("root %d; expected a rank from 0 to %d", r.Root, r.Ranks-1)
	case len(r.Collectives) == 0 || len(r.Algorithms) == 0:
		return nil, errors.New("no collective, or no algorithm")
	}
	sizes, err := r.Sizes.List()
	if err != nil {
		return nil, err
	}
	if len(sizes) > maxLines {
		return nil, fmt.Errorf("%d sizes; expected up to %d", len(sizes), maxLines)
	}
	for _, a := range r.Algorithms {
		has := func(c string) bool { return slices.Contains(schedule.Algorithms(c), a) }
		if a != "auto" && a != "all" && !slices.ContainsFunc(r.Collectives, has) {
			return nil, fmt.Errorf("algorithm %q is none of %s", a, strings.Join(r.Collectives, " or "))
		}
	}
	var out []Measured
	for _, c := range r.Collectives {
		names := r.algorithms(c)
		if len(names) == 0 {
			return nil, fmt.Errorf("collective %q is not known, or has none of these algorithms; collectives are %s",
				c, strings.Join(schedule.Collectives(), ", "))
		}
		for _, a := range names {
			m, err := r.measure(c, a, sizes)
			if err != nil && slices.Contains(r.Algorithms, "all") {
				continue // it does not support this number of ranks
			}
			if err != nil {
				return nil, fmt.Errorf("%s by %s: %w", c, a, err)
			}
			out = append(out, m)
		}
	}
	return out, nil
}

// algorithms returns the algorithms to measure for a collective, each once.
func (r *Request) algorithms(collective string) []string {
	all := schedule.Algorithms(collective)
	var out []string
	add := func(names ...string) {
		for _, a := range names {
			if slices.Contains(all, a) && !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	for _, a := range r.Algorithms {
		switch {
		case all == nil:
		case a == "all":
			add(all...)
		case a == "auto":
			add(all[0])
		default:
			add(a)
		}
	}
	return out
}

// measure returns the measurement of a collective with one algorithm.
func (r *Request) measure(collective, algorithm string, sizes []units.Bytes) (Measured, error) {
	m := Measured{Collective: collective, Algorithm: algorithm, Warmup: r.Warmup}
	f, err := schedule.About(collective, algorithm)
	if err != nil {
		return m, err
	}
	for _, size := range sizes {
		s := schedule.Spec{
			Collective: collective, Algorithm: algorithm, Ranks: r.Ranks, Type: r.Type, Size: size, Chunk: r.Chunk,
		}
		if f.Reduces {
			s.Op = r.Op
		}
		if f.Rooted {
			s.Root = r.Root
		}
		if s.Chunk == 0 {
			s.Chunk = schedule.DefaultChunk(collective, algorithm)
		}
		if s.Size, err = bench.Fit(s); err != nil {
			return m, err
		}
		if f.Window {
			s.Parallel = r.Parallel
			if f.Windowed && s.Parallel == 0 {
				s.Parallel = 16 // STrack, section 4.3: 16, 32 and 64
			}
		}
		if f.Group {
			if s.Group = r.localGroup(); s.Group == 0 {
				return m, fmt.Errorf("%d ranks do not form local groups of 8, 4 or 2; say how many a group has",
					r.Ranks)
			}
		}
		if f.Permuted {
			if s.Permute, err = schedule.Shift(r.Ranks, 1); err != nil { // as in sendrecv_perf
				return m, err
			}
		}
		if s.Size == 0 {
			m.Skipped = append(m.Skipped, size)
			continue
		}
		if _, err := schedule.Tags(s); err != nil {
			return m, err
		}
		n := r.Iterations
		if n == 0 {
			n = Iterations(s.Size)
		}
		m.Specs, m.Iterations = append(m.Specs, s), append(m.Iterations, n)
	}
	if len(m.Specs) == 0 {
		return m, errors.New("every size is too small to give each rank something")
	}
	return m, nil
}

// localGroup returns the number of neighbouring ranks per group of a hierarchical collective; 0 if
// none is possible.
func (r *Request) localGroup() int {
	if r.Group > 0 {
		return r.Group
	}
	for _, n := range []int{8, 4, 2} {
		if r.Ranks%n == 0 && r.Ranks > n {
			return n
		}
	}
	return 0
}

// Trace returns the measurement as a trace: one repeated collective per size, in sequence.
func (m *Measured) Trace() string {
	items := make([]trace.Item, len(m.Specs))
	for i, s := range m.Specs {
		items[i] = trace.Item{
			Name: s.Size.String(), Collective: s.Collective, Algorithm: s.Algorithm, Type: s.Type, Op: s.Op,
			Size: s.Size, Chunk: s.Chunk,
			Previous: i > 0, Repeat: m.Warmup + m.Iterations[i], Stride: 1, Parallel: s.Parallel, Local: s.Group,
			Root: s.Root,
		}
		if items[i].Op == "" {
			items[i].Op = schedule.Sum
		}
		if s.Permute != nil {
			items[i].Shift = 1
		}
	}
	return trace.Format(items)
}
