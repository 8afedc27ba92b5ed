package splitmix

import "testing"

// The first numbers of Java's SplittableRandom with seed 1234567, which is the reference
// implementation.
func TestReference(t *testing.T) {
	state := uint64(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431,
		16408922859458223821} {
		if got := Next(&state); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
	}
}

// Step is one number ahead of Next.
func TestStep(t *testing.T) {
	a, b := uint64(1234567), uint64(1234567)
	Next(&b)
	for i := range 5 {
		if got, want := Step(&a), Next(&b); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
	}
}
