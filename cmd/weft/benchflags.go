package main

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"weft/collectives/bench"
	"weft/collectives/schedule"
	"weft/units"
)

func words[T ~string](all []T) string {
	out := make([]string, len(all))
	for i, w := range all {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}

// read makes a request of the flags that are text.
func (f *benchFlags) read() error {
	size := func(flag, text string, to *units.Bytes) error {
		n, err := bench.ParseSize(text)
		if err != nil {
			return usagef("-%s: %v", flag, err)
		}
		*to = n
		return nil
	}
	s := &f.request.Sizes
	if f.end == "" {
		f.end = f.begin
	}
	if err := errors.Join(size("b", f.begin, &s.Begin), size("e", f.end, &s.End), size("i", f.step, &s.Step)); err != nil {
		return usageError{err}
	}
	s.Factor = f.factor
	if f.chunk != "" {
		if err := size("-chunk", f.chunk, &f.request.Chunk); err != nil {
			return err
		}
	}
	if err := f.elements(); err != nil {
		return err
	}
	switch {
	case f.factor < 1:
		return usagef("-f %d; expected 2 or more to multiply by, or 1: then -i is added", f.factor)
	case f.engine.Kind == "both":
		return usagef("--engine both; expected auto, sim or emu: a benchmark is of one engine")
	}
	switch filepath.Ext(f.figure) {
	case "", ".svg", ".png":
	default:
		return usagef("--plot %s; expected a name that ends in .svg or .png", f.figure)
	}
	return nil
}

// elements reads -d and -o, which nccl-tests has more of.
func (f *benchFlags) elements() error {
	f.request.Type, f.request.Op = schedule.Type(f.kind), schedule.Reduction(f.op)
	if f.kind == "float" { // as nccl-tests calls it
		f.request.Type = schedule.Float32
	}
	switch {
	case f.kind == "all":
		return usagef("--type all; a benchmark is of one type: call it once for each of %s", words(schedule.Types()))
	case f.op == "all":
		return usagef("--op all; a benchmark is of one reduction: call it once for each of %s", words(schedule.Reductions()))
	case !slices.Contains(schedule.Types(), f.request.Type):
		how := ""
		if f.kind == "half" || f.kind == "fp16" {
			how = "; bfloat16 is as long"
		}
		return usagef("--type %q; expected one of float, %s%s", f.kind, words(schedule.Types()), how)
	case !slices.Contains(schedule.Reductions(), f.request.Op):
		how := ""
		if f.op == "avg" {
			how = "; an average is a sum that every rank divides, and moves as much"
		}
		return usagef("--op %q; expected one of %s%s", f.op, words(schedule.Reductions()), how)
	}
	return nil
}
