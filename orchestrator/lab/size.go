package lab

import (
	"fmt"
	"math"
	"strings"

	"weft/units"
)

// size reads an amount of data: in bytes, in bytes for so much of the rate, or in
// bandwidth-delay products.
func (f field) size() (Size, bool) {
	return read(f, "a size such as 64KB, 5bdp or 25%bdp", parseSize, Size.String)
}

func parseSize(text string) (Size, error) {
	number, bdp := strings.CutSuffix(text, "bdp")
	if !bdp {
		return parseSizeInBytes(text)
	}
	v, err := orPercent(parseDecimal)(number)
	switch {
	case err != nil:
		return Size{}, fmt.Errorf("%q is not a number of bandwidth-delay products; expected one such as 5bdp or 25%%bdp", clip(text))
	case v < 0 || v > maxBDP:
		return Size{}, fmt.Errorf("%q is out of range; expected 0bdp to %dbdp", clip(text), maxBDP)
	}
	return Size{BDP: v}, nil
}

// parseSizeInBytes reads an absolute size, or one for so much of the link's rate.
func parseSizeInBytes(text string) (Size, error) {
	bytes, rate, per := strings.Cut(text, "/")
	b, err := units.ParseBytes(bytes)
	if err == nil && (b < 0 || b > maxBuffer) {
		err = fmt.Errorf("%q is out of range; expected 0B to %v", clip(text), maxBuffer)
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
		return showDecimal(s.BDP) + "bdp"
	default:
		return units.FormatPercent(s.BDP) + "bdp"
	}
}

// isZero says that s is nothing on every link.
func (s Size) isZero() bool { return s.Bytes == 0 && s.BDP == 0 }

// comparable says that which of the two is larger is the same on every link.
func (s Size) comparable(o Size) bool {
	return s.isZero() || o.isZero() || (s.BDP != 0) == (o.BDP != 0) && (s.Per != 0) == (o.Per != 0)
}

// above says that s is larger than o, which it is comparable with.
func (s Size) above(o Size) bool {
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
