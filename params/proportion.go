package params

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"weft/internal/clip"
	"weft/units"
)

// Bounds of rates and of amounts of data. Ours: they stop slips of the pen.
const (
	MinRate   = units.Kbps      // of a link, a host or a flow
	MaxRate   = 10 * units.Tbps // of a link, a host or a flow
	maxBuffer = 64 * units.GB
	maxBDP    = 10_000 // bandwidth-delay products
)

// perRate matches the optional second part of a quantity in proportion to a rate.
func perRate() string { return "(/" + units.BandwidthPattern() + ")?" }

// Rate is a bandwidth: absolute, or in proportion to the line rate of the host it is used on.
type Rate struct {
	Rate units.Bandwidth
	Per  units.Bandwidth // the line rate that Rate is meant for; 0: Rate holds on every line
}

// LineRate is a Rate, from MinRate to MaxRate, such as 40Mbps or 5Mbps/25Gbps.
func LineRate(to *Rate) Of[Rate] {
	return Of[Rate]{
		to: to, parse: parseRate, show: Rate.String, expected: always("a rate such as 40Mbps or 5Mbps/25Gbps"),
		bounds: func() string { return fmt.Sprintf("%v to %v", MinRate, MaxRate) },
		within: func(r Rate) bool { return r.Rate >= MinRate && r.Rate <= MaxRate },
		form: func() Form {
			return Form{Patterns: []string{units.BandwidthPattern() + perRate()}, Example: "5Mbps/25Gbps"}
		},
	}
}

func parseRate(text string) (Rate, error) {
	first, second, per := strings.Cut(text, "/")
	var r Rate
	var err error
	if r.Rate, err = units.ParseBandwidth(first); err == nil && per {
		r.Per, err = parsePer(text, second)
	}
	switch {
	case err != nil && !per:
		return r, fmt.Errorf("%w, or in proportion to the line rate such as 5Mbps/25Gbps", err)
	case err != nil:
		return r, err
	case per && r.Rate >= MinRate && r.Rate <= MaxRate && r.Rate > r.Per:
		return r, fmt.Errorf("%q is above the line rate; expected at most the rate after the slash", clip.Text(text))
	}
	return r, nil
}

// parsePer parses the rate that a quantity is in proportion to. text is the whole quantity, for
// messages.
func parsePer(text, per string) (units.Bandwidth, error) {
	r, err := units.ParseBandwidth(per)
	if err == nil && (r < MinRate || r > MaxRate) {
		err = fmt.Errorf("%q is out of range; expected it for %v to %v", clip.Text(text), MinRate, MaxRate)
	}
	return r, err
}

// String formats r as in a lab file.
func (r Rate) String() string {
	if r.Per == 0 {
		return r.Rate.String()
	}
	return r.Rate.String() + "/" + r.Per.String()
}

// At returns r on a line of the given rate. In proportion, it is at least 1 bit per second.
func (r Rate) At(line units.Bandwidth) units.Bandwidth {
	if r.Per == 0 {
		return r.Rate
	}
	return max(units.Bandwidth(float64(r.Rate)*(float64(line)/float64(r.Per))), 1)
}

// On returns r on a line of the given rate, as an absolute Rate.
func (r Rate) On(line units.Bandwidth) Rate { return Rate{Rate: r.At(line)} }

// Size is an amount of data: absolute, in proportion to the rate of the link it is used on, or as a
// multiple of the link's bandwidth-delay product (its rate times the base RTT of the network).
type Size struct {
	Bytes units.Bytes
	Per   units.Bandwidth // the link rate that Bytes are meant for; 0: Bytes hold on every link
	BDP   float64         // bandwidth-delay products; 0: Bytes and Per count
}

// Amount is a Size, such as 64KB, 1MB/100Gbps, 5bdp or 25%bdp.
func Amount(to *Size) Of[Size] {
	return Of[Size]{
		to: to, parse: parseSize, show: Size.String, expected: always("a size such as 64KB, 5bdp or 25%bdp"),
		form: func() Form {
			return Form{Patterns: []string{Multiple, units.BytesPattern() + perRate()}, Example: "25%bdp"}
		},
	}
}

// Multiple matches a multiple of the bandwidth-delay product.
const Multiple = Plain + `%?bdp`

func parseSize(text string) (Size, error) {
	number, bdp := strings.CutSuffix(text, "bdp")
	if !bdp {
		return parseSizeInBytes(text)
	}
	v, err := OrPercent(ParseDecimal)(number)
	switch {
	case err != nil:
		return Size{}, fmt.Errorf(
			"%q is not a number of bandwidth-delay products; expected one such as 5bdp or 25%%bdp", clip.Text(text))
	case v < 0 || v > maxBDP:
		return Size{}, fmt.Errorf("%q is out of range; expected 0bdp to %dbdp", clip.Text(text), maxBDP)
	}
	return Size{BDP: v}, nil
}

// parseSizeInBytes parses an absolute size, or one in proportion to the link's rate.
func parseSizeInBytes(text string) (Size, error) {
	bytes, rate, per := strings.Cut(text, "/")
	b, err := units.ParseBytes(bytes)
	if err == nil && (b < 0 || b > maxBuffer) {
		err = fmt.Errorf("%q %w; expected 0B to %v", clip.Text(text), units.ErrRange, maxBuffer)
	}
	if err != nil && !errors.Is(err, units.ErrRange) {
		err = fmt.Errorf("%w, or in bandwidth-delay products such as 5bdp or 25%%bdp", err)
	}
	s := Size{Bytes: b}
	if err == nil && per {
		s.Per, err = parsePer(text, rate)
	}
	return s, err
}

// String formats s as in a lab file.
func (s Size) String() string {
	switch {
	case s.BDP == 0 && s.Per != 0:
		return s.Bytes.String() + "/" + s.Per.String()
	case s.BDP == 0:
		return s.Bytes.String()
	case s.BDP == math.Trunc(s.BDP):
		return ShowDecimal(s.BDP) + "bdp"
	default:
		return units.FormatPercent(s.BDP) + "bdp"
	}
}

// None reports whether s is 0 on every link.
func (s Size) None() bool { return s.Bytes == 0 && s.BDP == 0 }

// Half returns half of s.
func (s Size) Half() Size { return Size{Bytes: s.Bytes / 2, Per: s.Per, BDP: s.BDP / 2} }

// Comparable reports whether the same one of s and o is larger on every link.
func (s Size) Comparable(o Size) bool {
	return s.None() || o.None() || (s.BDP != 0) == (o.BDP != 0) && (s.Per != 0) == (o.Per != 0)
}

// Above reports whether s is larger than o. The two must be Comparable.
func (s Size) Above(o Size) bool {
	if s.Per != 0 && o.Per != 0 {
		return float64(s.Bytes)/float64(s.Per) > float64(o.Bytes)/float64(o.Per)
	}
	return s.BDP > o.BDP || s.Bytes > o.Bytes && o.BDP == 0
}

// On returns s in bytes on a link of the given rate and bandwidth-delay product.
func (s Size) On(rate units.Bandwidth, bdp units.Bytes) units.Bytes {
	if s.Per != 0 {
		return units.Bytes(float64(s.Bytes) * (float64(rate) / float64(s.Per)))
	}
	return s.Bytes + units.Bytes(s.BDP*float64(bdp))
}
