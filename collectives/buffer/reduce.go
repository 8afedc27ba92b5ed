package buffer

import (
	"math"

	"weft/collectives/schedule"
)

// reducer returns the function that reduces src into dst, element by element. They have the same
// length, a multiple of an element.
func reducer(kind schedule.Type, op schedule.Reduction) func(dst, src []byte) {
	switch kind {
	case schedule.Int32:
		return reduceInt32(op)
	case schedule.BFloat16:
		f := scalar(op)
		return func(dst, src []byte) {
			for len(dst) >= 2 && len(src) >= 2 {
				put16(dst, toBFloat16(f(fromBFloat16(get16(dst)), fromBFloat16(get16(src)))))
				dst, src = dst[2:], src[2:]
			}
		}
	}
	if op == "" || op == schedule.Sum {
		return add
	}
	f := scalar(op)
	return func(dst, src []byte) {
		for len(dst) >= 4 && len(src) >= 4 {
			put32(dst, math.Float32bits(f(math.Float32frombits(get32(dst)), math.Float32frombits(get32(src)))))
			dst, src = dst[4:], src[4:]
		}
	}
}

// add adds float32 elements.
func add(dst, src []byte) {
	for len(dst) >= 4 && len(src) >= 4 {
		put32(dst, math.Float32bits(math.Float32frombits(get32(dst))+math.Float32frombits(get32(src))))
		dst, src = dst[4:], src[4:]
	}
}

// scalar returns the reduction of two numbers.
func scalar(op schedule.Reduction) func(a, b float32) float32 {
	switch op {
	case schedule.Prod:
		return func(a, b float32) float32 { return a * b }
	case schedule.Max:
		return func(a, b float32) float32 { return max(a, b) }
	case schedule.Min:
		return func(a, b float32) float32 { return min(a, b) }
	}
	return func(a, b float32) float32 { return a + b }
}

// reduceInt32 returns the reduction of int32 elements; sums and products are modulo 2^32.
func reduceInt32(op schedule.Reduction) func(dst, src []byte) {
	f := func(a, b int32) int32 { return a + b }
	switch op {
	case schedule.Prod:
		f = func(a, b int32) int32 { return a * b }
	case schedule.Max:
		f = func(a, b int32) int32 { return max(a, b) }
	case schedule.Min:
		f = func(a, b int32) int32 { return min(a, b) }
	}
	return func(dst, src []byte) {
		for len(dst) >= 4 && len(src) >= 4 {
			put32(dst, uint32(f(int32(get32(dst)), int32(get32(src)))))
			dst, src = dst[4:], src[4:]
		}
	}
}

// toBFloat16 rounds to the nearest bfloat16, ties to even. x is not NaN.
func toBFloat16(x float32) uint32 {
	bits := math.Float32bits(x)
	return (bits + 0x7fff + bits>>16&1) >> 16
}

// fromBFloat16 returns the value of a bfloat16.
func fromBFloat16(bits uint32) float32 { return math.Float32frombits(bits << 16) }
