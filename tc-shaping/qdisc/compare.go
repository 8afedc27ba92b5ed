package qdisc

import (
	"fmt"
	"time"
)

// Difference is a setting whose value in the kernel differs from the requested one.
type Difference struct {
	Side       string // "near" or "far"
	Qdisc      string // such as "red 2:", or "filters"
	Field      string
	Asked, Got string
}

func (d Difference) String() string {
	return fmt.Sprintf("%s %s %s: asked for %s, got %s", d.Side, d.Qdisc, d.Field, d.Asked, d.Got)
}

// field is a Difference within one discipline.
type field struct{ name, asked, got string }

// Compare returns the differences between the requested tree and the one read back from the kernel.
// It cannot see netem's delay tables, which the kernel does not report.
func Compare(asked, got Tree) []Difference {
	out := append(compareRows("near", asked.Near, got.Near), compareRows("far", asked.Far, got.Far)...)
	if a, g := asked.Source.String(), got.Source.String(); a != g {
		out = append(out, Difference{"far", "filters", "senders", a, g})
	}
	if a, g := asked.Gate.String(), got.Gate.String(); a != g {
		out = append(out, Difference{"near and far", "bpf", "settings", a, g})
	}
	return out
}

func compareRows(side string, asked, got []Qdisc) []Difference {
	var out []Difference
	for i := range max(len(asked), len(got)) {
		switch {
		case i >= len(got):
			out = append(out, Difference{side, name(asked[i]), "discipline", asked[i].String(), "none"})
		case i >= len(asked):
			out = append(out, Difference{side, name(got[i]), "discipline", "none", got[i].String()})
		case asked[i].Handle != got[i].Handle || asked[i].Parent != got[i].Parent ||
			asked[i].Options.Kind() != got[i].Options.Kind():
			out = append(out, Difference{side, name(asked[i]), "discipline", asked[i].String(), got[i].String()})
		default:
			for _, f := range asked[i].Options.differs(got[i].Options) {
				out = append(out, Difference{side, name(asked[i]), f.name, f.asked, f.got})
			}
		}
	}
	return out
}

// differs returns the differences between two disciplines. compare adds them if both have the same
// type.
func differs[T Options](asked T, got Options, compare func(f *fields, got T)) []field {
	same, ok := got.(T)
	if !ok { // this kind, but with settings that no plan uses
		return []field{{"settings", asked.String(), got.String()}}
	}
	var f fields
	compare(&f, same)
	return f
}

// differs returns nothing: no plan asks for a Foreign discipline.
func (o Foreign) differs(got Options) []field {
	return []field{{"settings", o.String(), got.String()}}
}

func name(q Qdisc) string { return fmt.Sprintf("%s %v", q.Options.Kind(), q.Handle) }

// fields collects differences.
type fields []field

func (f *fields) add(name string, same bool, asked, got any) {
	if !same {
		*f = append(*f, field{name, fmt.Sprint(asked), fmt.Sprint(got)})
	}
}

// equal adds a field whose values must be identical.
func equal[T comparable](f *fields, name string, asked, got T) { f.add(name, asked == got, asked, got) }

func (o HTB) differs(got Options) []field {
	return differs(o, got, func(f *fields, got HTB) {
		equal(f, "rate, B/s", o.Rate, got.Rate)
		equal(f, "filter for control packets", o.Filter, got.Filter)
		// Netlink carries the bucket in units of 64 ns.
		f.add("bucket", (o.Bucket-got.Bucket).Abs() < 64*time.Nanosecond, o.Bucket, got.Bucket)
		equal(f, "overhead, bytes", o.Overhead, got.Overhead)
	})
}

func (o FIFO) differs(got Options) []field {
	return differs(o, got, func(f *fields, got FIFO) {
		equal(f, "limit, bytes", int64(o.Limit), int64(got.Limit))
	})
}

func (o REDStage) differs(got Options) []field {
	return differs(o, got, func(f *fields, got REDStage) {
		equal(f, "min, bytes", int64(o.Min), int64(got.Min))
		equal(f, "max, bytes", int64(o.Max), int64(got.Max))
		equal(f, "max_P, 2^-32", o.MaxP, got.MaxP)
	})
}

func (o Netem) differs(got Options) []field {
	return differs(o, got, func(f *fields, got Netem) {
		equal(f, "delay", o.Latency, got.Latency)
		equal(f, "jitter", o.Jitter, got.Jitter)
		equal(f, "loss, of 2^32-1", o.Loss, got.Loss)
		equal(f, "duplicate, of 2^32-1", o.Duplicate, got.Duplicate)
		equal(f, "corrupt, of 2^32-1", o.Corrupt, got.Corrupt)
		equal(f, "limit, packets", o.Limit, got.Limit)
		equal(f, "rate, B/s", o.Rate, got.Rate)
		equal(f, "overhead, bytes", o.Overhead, got.Overhead)
	})
}
