package units

import "math/bits"

// Bytes is a size or an amount of data.
type Bytes int64

// Sizes in powers of ten and of two.
const (
	Byte Bytes = 1
	KB         = 1000 * Byte
	MB         = 1000 * KB
	GB         = 1000 * MB
	KiB        = 1024 * Byte
	MiB        = 1024 * KiB
	GiB        = 1024 * MiB
)

// Bandwidth is a rate in bits per second.
type Bandwidth int64

// Rates in powers of ten.
const (
	BitPerSecond Bandwidth = 1
	Kbps                   = 1000 * BitPerSecond
	Mbps                   = 1000 * Kbps
	Gbps                   = 1000 * Mbps
	Tbps                   = 1000 * Gbps
)

// TransmitTime returns how long n bytes occupy a link of rate b, rounded down to a picosecond.
// A sender of many packets uses a Line instead, which carries the remainder from one to the next.
// It panics when b is not positive or n is negative: both are broken invariants, never input.
func (b Bandwidth) TransmitTime(n Bytes) Time {
	q, _ := b.transmit(n, 0)
	return q
}

// transmit returns the time n bytes take at rate b plus carry, and the remainder, both in units of 1/b ps.
func (b Bandwidth) transmit(n Bytes, carry uint64) (Time, uint64) {
	if b <= 0 || n < 0 {
		panic("units: transmit time of a negative size or at a rate that is not positive")
	}
	hi, lo := bits.Mul64(8*uint64(n), uint64(Second)) // 8e12·n overflows above 2.3 MB
	lo, c := bits.Add64(lo, carry, 0)
	q, r := bits.Div64(hi+c, lo, uint64(b)) // panics if the answer exceeds 64 bits
	return Time(q), r
}

// BytesIn returns how many whole bytes a link of rate b carries in t, rounded down. t must not be negative.
func (b Bandwidth) BytesIn(t Time) Bytes {
	hi, lo := bits.Mul64(uint64(b), uint64(t))
	q, _ := bits.Div64(hi, lo, 8*uint64(Second))
	return Bytes(q)
}

// Rate returns the rate at which n bytes pass in t, rounded down; 0 when t is not positive.
func Rate(n Bytes, t Time) Bandwidth {
	if t <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(8*uint64(n), uint64(Second))
	if hi >= uint64(t) {
		return Bandwidth(1<<63 - 1)
	}
	q, _ := bits.Div64(hi, lo, uint64(t))
	return Bandwidth(q)
}

// Line is the transmitting end of a link. It carries the fraction of a picosecond that a packet leaves over
// to the next one, so that the rate is exact in the long run however odd it is.
type Line struct {
	rate    Bandwidth
	perByte Time   // exact picoseconds per byte, or 0 when the rate does not divide evenly
	carry   uint64 // remainder in units of 1/rate ps
}

// NewLine returns a line of the given rate, which must be positive.
func NewLine(rate Bandwidth) Line {
	l := Line{rate: rate}
	if one := 8 * int64(Second); one%int64(rate) == 0 {
		l.perByte = Time(one / int64(rate))
	}
	return l
}

// Rate returns the rate the line was made with.
func (l *Line) Rate() Bandwidth { return l.rate }

// PerByte returns how long each byte occupies the line, or 0 when that is no whole number of picoseconds.
func (l *Line) PerByte() Time { return l.perByte }

// Transmit returns how long the next n bytes occupy the line.
func (l *Line) Transmit(n Bytes) Time {
	if l.perByte != 0 {
		return l.perByte * Time(n)
	}
	t, r := l.rate.transmit(n, l.carry)
	l.carry = r
	return t
}
