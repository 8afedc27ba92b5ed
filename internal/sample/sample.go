// Package sample chooses which of many cases a test run covers.
//
// Some tests have far more cases than a developer can wait for: a kill at every step of a
// deployment, every kernel setting under User Mode Linux. `make test-all` runs all of them
// (WEFT_TEST=all). `make test` runs a few, which differ between commits (WEFT_SAMPLE is the
// commit's hash). Cases rotate this way, and a failure can be repeated: the test logs its sample,
// and the same hash selects the same cases. Without either variable, as under a plain go test, the
// hash is empty.
//
//	for _, c := range sample.Of(t, 3, cases...) {
//		t.Run(c.name, c.run)
//	}
package sample

import (
	"crypto/sha256"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// Environment variables that `make test` and `make test-all` set.
const (
	allVar  = "WEFT_TEST"   // "all": every case
	hashVar = "WEFT_SAMPLE" // any text: which sample
)

// All reports whether every case is wanted.
func All() bool { return os.Getenv(allVar) == "all" }

// Rand returns the random numbers of a test's sample. They depend only on the test's name and the
// commit.
func Rand(t testing.TB) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256([]byte(os.Getenv(hashVar) + "\x00" + t.Name()))))
}

// Take reports whether a test belongs to the sample, which holds for one of n tests. Without
// WEFT_SAMPLE it holds for every test, so that a test run by name runs.
func Take(t testing.TB, n int) bool {
	return All() || os.Getenv(hashVar) == "" || Rand(t).IntN(n) == 0
}

// Rotate skips a test that does not belong to the sample of one in n. See Take.
func Rotate(t testing.TB, n int) {
	t.Helper()
	if !Take(t, n) {
		t.Skip("another commit's sample: make test-all runs it")
	}
}

// Number returns how many times a test does something: what the environment variable says, or else
// otherwise. Anything but a number from 1 on fails the test.
func Number(t testing.TB, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number from 1 on", variable, text)
	}
	return n
}

// Of returns n of the cases in their order, or all of them if there are no more or All is true.
func Of[T any](t testing.TB, n int, cases ...T) []T {
	t.Helper()
	if All() || len(cases) <= n {
		return cases
	}
	chosen := Rand(t).Perm(len(cases))[:n]
	slices.Sort(chosen)
	t.Logf("cases %v of 0 to %d; make test-all runs all", chosen, len(cases)-1)
	picked := make([]T, n)
	for i, c := range chosen {
		picked[i] = cases[c]
	}
	return picked
}
