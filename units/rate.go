package units

import "math/bits"

// Bytes is an amount of data, such as the size of a packet or of a queue.
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

// TransmitTime returns the serialization time of n bytes at rate b, rounded down to a picosecond.
// For a stream of packets use a Line, which carries the remainder from one packet to the next.
// TransmitTime panics if b is not positive or n is negative: both are broken invariants, never
// input.
func (b Bandwidth) TransmitTime(n Bytes) Time {
	q, _ := b.transmit(n, 0)
	return q
}

// transmit returns the serialization time of n bytes at rate b, with carry added before rounding
// down, and the new remainder. carry and the remainder are in units of 1/b ps.
func (b Bandwidth) transmit(n Bytes, carry uint64) (Time, uint64) {
	if b <= 0 || n < 0 {
		panic("units: transmit time of a negative size or at a rate that is not positive")
	}
	hi, lo := bits.Mul64(8*uint64(n), uint64(Second)) // 128 bits: 8e12·n overflows 64 from 2.3 MB
	lo, c := bits.Add64(lo, carry, 0)
	q, r := bits.Div64(hi+c, lo, uint64(b)) // panics if the quotient exceeds 64 bits
	return Time(q), r
}

// BytesIn returns the number of whole bytes that a link of rate b carries in t. t must not be
// negative.
func (b Bandwidth) BytesIn(t Time) Bytes {
	hi, lo := bits.Mul64(uint64(b), uint64(t))
	q, _ := bits.Div64(hi, lo, 8*uint64(Second))
	return Bytes(q)
}

// Rate returns the average rate of n bytes in t, rounded down. It is 0 if t is not positive, and
// the largest Bandwidth if the quotient does not fit.
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

// Line computes serialization times at the transmitting end of a link. It carries the fraction of a
// picosecond that rounding cuts off one packet to the next, so that any rate is exact in the long
// run: the times of all packets so far add up to the time of all their bytes, rounded down.
type Line struct {
	rate    Bandwidth
	perByte Time   // exact; 0 if a byte does not last a whole number of picoseconds
	carry   uint64 // remainder in units of 1/rate ps
}

// NewLine returns a Line of the given rate, which must be positive.
func NewLine(rate Bandwidth) Line {
	l := Line{rate: rate}
	if one := 8 * int64(Second); one%int64(rate) == 0 {
		l.perByte = Time(one / int64(rate))
	}
	return l
}

// Rate returns the rate that NewLine was given.
func (l *Line) Rate() Bandwidth { return l.rate }

// PerByte returns the serialization time of a byte, or 0 if that is not a whole number of
// picoseconds. Callers cache it to avoid the division of Transmit.
func (l *Line) PerByte() Time { return l.perByte }

// Transmit returns the serialization time of the next n bytes, and keeps the remainder.
func (l *Line) Transmit(n Bytes) Time {
	if l.perByte != 0 {
		return l.perByte * Time(n)
	}
	t, r := l.rate.transmit(n, l.carry)
	l.carry = r
	return t
}
