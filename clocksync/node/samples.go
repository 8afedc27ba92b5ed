package node

import (
	"encoding/binary"
	"errors"
	"fmt"

	"weft/clocksync"
	"weft/units"
)

// minSample is the shortest encoding of a sample in bytes: a byte for each of its four parts.
const minSample = 4

// downBit marks a sample in which the protocol's process does not run, beside its state.
const downBit = 0x80

// AppendSamples appends samples in a compact form, about 10 bytes each. Each sample is the change
// of At, Error and Bound since the one before it, as zigzag varints, and a byte with the state.
func AppendSamples(b []byte, samples []Sample) []byte {
	var last Sample
	for _, s := range samples {
		b = binary.AppendVarint(b, int64(s.At-last.At))
		b = binary.AppendVarint(b, int64(s.Error-last.Error))
		b = binary.AppendVarint(b, int64(s.Bound-last.Bound))
		state := byte(s.State)
		if s.Down {
			state |= downBit
		}
		b = append(b, state)
		last = s
	}
	return b
}

// DecodeSamples returns the samples of AppendSamples. It returns an error for anything else; the
// result is never longer than a quarter of b.
func DecodeSamples(b []byte) ([]Sample, error) {
	samples := make([]Sample, 0, len(b)/(2*minSample))
	var last Sample
	for len(b) > 0 {
		for _, v := range []*units.Time{&last.At, &last.Error, &last.Bound} {
			change, n := binary.Varint(b)
			if n <= 0 {
				return nil, fmt.Errorf("node: sample %d is cut short or too large", len(samples))
			}
			*v += units.Time(change)
			b = b[n:]
		}
		if len(b) == 0 {
			return nil, errors.New("node: the last sample has no state")
		}
		last.State, last.Down = clocksync.State(b[0]&^downBit), b[0]&downBit != 0
		if last.State > clocksync.Holdover {
			return nil, fmt.Errorf("node: sample %d has an unknown state, %d", len(samples), last.State)
		}
		samples = append(samples, last)
		b = b[1:]
	}
	return samples, nil
}
