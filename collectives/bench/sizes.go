package bench

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"weft/collectives/schedule"
	"weft/units"
)

// Sizes is the range of sizes of a benchmark, with the options of nccl-tests: from Begin (-b) to
// End (-e), times Factor (-f) if that is above 1, else plus Step (-i).
type Sizes struct {
	Begin, End units.Bytes // inclusive
	Step       units.Bytes
	Factor     int64
}

// maxSizes is the largest number of sizes of a benchmark.
const maxSizes = 10_000

// List returns the sizes.
func (s Sizes) List() ([]units.Bytes, error) {
	switch {
	case s.Begin < 1:
		return nil, fmt.Errorf("the first size is %d; at least 1 is needed", s.Begin)
	case s.Begin > s.End:
		return nil, fmt.Errorf("the first size, %v, is above the last, %v", s.Begin, s.End)
	case s.Factor <= 1 && s.Step < 1 && s.Begin < s.End:
		return nil, fmt.Errorf("sizes from %v to %v in steps of %d", s.Begin, s.End, s.Step)
	}
	var list []units.Bytes
	for at := s.Begin; at <= s.End; {
		if list = append(list, at); len(list) > maxSizes {
			return nil, fmt.Errorf("more than %d sizes from %v to %v", maxSizes, s.Begin, s.End)
		}
		switch {
		case s.Factor > 1 && at > s.End/units.Bytes(s.Factor), s.Factor <= 1 && (s.Step < 1 || at > s.End-s.Step):
			return list, nil // the next size would be above End, or overflow
		case s.Factor > 1:
			at *= units.Bytes(s.Factor)
		default:
			at += s.Step
		}
	}
	return list, nil
}

// ParseSize parses a size like nccl-tests: a number with K, M or G for KiB, MiB or GiB, or without.
// It also accepts the units of lab files, such as 128MB.
func ParseSize(text string) (units.Bytes, error) {
	number, scale := text, units.Bytes(1)
	if text != "" {
		switch text[len(text)-1] {
		case 'k', 'K':
			scale = units.KiB
		case 'm', 'M':
			scale = units.MiB
		case 'g', 'G':
			scale = units.GiB
		}
		if scale > 1 {
			number = text[:len(text)-1]
		}
	}
	if strings.ContainsAny(number, "xXpPiInN_eE+") { // ParseFloat accepts more formats than people mean
		if size, err := units.ParseBytes(text); err == nil {
			return size, nil
		}
		return 0, sizeError(text)
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil {
		if size, err := units.ParseBytes(text); err == nil {
			return size, nil
		}
		return 0, sizeError(text)
	}
	bytes := x * float64(scale)
	if bytes < 0 || bytes >= math.MaxInt64 || bytes != math.Trunc(bytes) {
		return 0, sizeError(text)
	}
	return units.Bytes(bytes), nil
}

// sizeError returns the error for a text that is no size.
func sizeError(text string) error {
	const most = 32
	if len(text) > most {
		text = text[:most] + "..."
	}
	return fmt.Errorf("%q is no size; expected one such as 8, 64K, 128M or 1G", text)
}

// Fit rounds s.Size down like nccl-tests: to whole elements, and if the buffer has a block for each
// rank, to a multiple of 16 bytes per rank. It is 0 if s.Size is too small.
func Fit(s schedule.Spec) (units.Bytes, error) {
	f, err := schedule.About(s.Collective, s.Algorithm)
	if err != nil {
		return 0, err
	}
	if s.Ranks < 1 || s.Size < 0 {
		return 0, errors.New("a size below 0, or no ranks")
	}
	unit := s.Type.Size()
	if f.Shared {
		unit = 16 * units.Bytes(s.Ranks)
	}
	return s.Size - s.Size%unit, nil
}
