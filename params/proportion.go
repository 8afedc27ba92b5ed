package params

import (
	"fmt"
	"math"
	"strings"

	"weft/units"
)

// Bounds of rates and of amounts of data.
const (
	MinRate   = units.Kbps
	MaxRate   = 10 * units.Tbps
	maxBuffer = 64 * units.GB
	maxBDP    = 10_000 // multiples of the bandwidth-delay product
)

// perRate is the second part of a quantity that is in proportion to a rate.
func perRate() string { return "(/" + units.BandwidthPattern() + ")?" }

// Rate is a bandwidth: absolute, or in proportion to the line rate of the host it is used on.
type Rate struct {
	Rate units.Bandwidth
	Per  units.Bandwidth // Rate for so much of the line; 0: Rate as it is
}

// LineRate is a rate: absolute, or for so much of the line.
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
		return r, fmt.Errorf("%w, or for so much of the line such as 5Mbps/25Gbps", err)
	case err != nil:
		return r, err
	case per && r.Rate >= MinRate && r.Rate <= MaxRate && r.Rate > r.Per:
		return r, fmt.Errorf("%q is more than the line; expected at most as much as it is for", Clip(text))
	}
	return r, nil
}

// parsePer reads the rate that a quantity is in proportion to.
func parsePer(text, per string) (units.Bandwidth, error) {
	r, err := units.ParseBandwidth(per)
	if err == nil && (r < MinRate || r > MaxRate) {
		err = fmt.Errorf("%q is out of range; expected it for %v to %v", Clip(text), MinRate, MaxRate)
	}
	return r, err
}

// String writes r as it would be written in a lab file.
func (r Rate) String() string {
	if r.Per == 0 {
		return r.Rate.String()
	}
	return r.Rate.String() + "/" + r.Per.String()
}

// At is r on a line of a rate, at least 1 bit per second unless r is none.
func (r Rate) At(line units.Bandwidth) units.Bandwidth {
	if r.Per == 0 {
		return r.Rate
	}
	return max(units.Bandwidth(float64(r.Rate)*(float64(line)/float64(r.Per))), 1)
}

// On is r as a rate on a line.
func (r Rate) On(line units.Bandwidth) Rate { return Rate{Rate: r.At(line)} }

// Size is an amount of data: absolute, in proportion to the rate of the link it is used on, or as a multiple of the
// link's bandwidth-delay product (its rate times the base RTT of the network).
type Size struct {
	Bytes units.Bytes
	Per   units.Bandwidth // Bytes for so much of the link's rate; 0: Bytes as they are
	BDP   float64         // 0: Bytes and Per count
}

// Amount is a Size.
func Amount(to *Size) Of[Size] {
	return Of[Size]{
		to: to, parse: parseSize, show: Size.String, expected: always("a size such as 64KB, 5bdp or 25%bdp"),
		form: func() Form {
			return Form{Patterns: []string{Multiple, units.BytesPattern() + perRate()}, Example: "25%bdp"}
		},
	}
}

// Multiple is what a multiple of the bandwidth-delay product looks like.
const Multiple = Plain + `%?bdp`

func parseSize(text string) (Size, error) {
	number, bdp := strings.CutSuffix(text, "bdp")
	if !bdp {
		return parseSizeInBytes(text)
	}
	v, err := OrPercent(ParseDecimal)(number)
	switch {
	case err != nil:
		return Size{}, fmt.Errorf("%q is not a number of bandwidth-delay products; expected one such as 5bdp or 25%%bdp", Clip(text))
	case v < 0 || v > maxBDP:
		return Size{}, fmt.Errorf("%q is out of range; expected 0bdp to %dbdp", Clip(text), maxBDP)
	}
	return Size{BDP: v}, nil
}

// parseSizeInBytes reads an absolute size, or one for so much of the link's rate.
func parseSizeInBytes(text string) (Size, error) {
	bytes, rate, per := strings.Cut(text, "/")
	b, err := units.ParseBytes(bytes)
	if err == nil && (b < 0 || b > maxBuffer) {
		err = fmt.Errorf("%q is out of range; expected 0B to %v", Clip(text), maxBuffer)
	}
	if err != nil && !strings.Contains(err.Error(), "range") {
		err = fmt.Errorf("%w, or in bandwidth-delay products such as 5bdp or 25%%bdp", err)
	}
	s := Size{Bytes: b}
	if err == nil && per {
		s.Per, err = parsePer(text, rate)
	}
	return s, err
}

// String writes s as it would be written in a lab file.
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

// None says that s is nothing on every link.
func (s Size) None() bool { return s.Bytes == 0 && s.BDP == 0 }

// Half is half of s.
func (s Size) Half() Size { return Size{Bytes: s.Bytes / 2, Per: s.Per, BDP: s.BDP / 2} }

// Comparable says that which of the two is larger is the same on every link.
func (s Size) Comparable(o Size) bool {
	return s.None() || o.None() || (s.BDP != 0) == (o.BDP != 0) && (s.Per != 0) == (o.Per != 0)
}

// Above says that s is larger than o, which it is comparable with.
func (s Size) Above(o Size) bool {
	if s.Per != 0 && o.Per != 0 {
		return float64(s.Bytes)/float64(s.Per) > float64(o.Bytes)/float64(o.Per)
	}
	return s.BDP > o.BDP || s.Bytes > o.Bytes && o.BDP == 0
}

// On returns s on a link of a rate and a bandwidth-delay product.
func (s Size) On(rate units.Bandwidth, bdp units.Bytes) units.Bytes {
	if s.Per != 0 {
		return units.Bytes(float64(s.Bytes) * (float64(rate) / float64(s.Per)))
	}
	return s.Bytes + units.Bytes(s.BDP*float64(bdp))
}
