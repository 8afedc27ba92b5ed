package main

import (
	"errors"
	"path/filepath"

	"weft/collectives/bench"
	"weft/units"
)

// read parses the flags that are text into the request.
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
	s.Factor = f.factor
	err := errors.Join(size("b", f.begin, &s.Begin), size("e", f.end, &s.End), size("i", f.step, &s.Step))
	if err != nil {
		return usageError{err}
	}
	if f.chunk != "" {
		if err := size("-chunk", f.chunk, &f.request.Chunk); err != nil {
			return err
		}
	}
	if f.request.Type, err = bench.ParseType(f.kind); err != nil {
		return usagef("--type %w", err)
	}
	if f.request.Op, err = bench.ParseReduction(f.op); err != nil {
		return usagef("--op %w", err)
	}
	switch {
	case f.factor < 1:
		return usagef("-f %d: expected a factor of 2 or more, or 1 to step by -i", f.factor)
	case f.engine.Both():
		return usagef("--engine both: expected auto, sim or emu, since a benchmark uses one engine")
	}
	if ext := filepath.Ext(f.figure); ext != "" && ext != ".svg" && ext != ".png" {
		return usagef("--plot %s: expected a file name that ends in .svg or .png", f.figure)
	}
	return nil
}
