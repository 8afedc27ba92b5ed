package sample

import (
	"slices"
	"strconv"
	"testing"
)

func TestOf(t *testing.T) {
	cases := []int{10, 11, 12, 13, 14, 15, 16, 17}
	t.Setenv(allVar, "")
	seen := map[int]bool{}
	for _, hash := range []string{"", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"} {
		t.Setenv(hashVar, hash)
		got := Of(t, 2, cases...)
		if len(got) != 2 || got[0] >= got[1] || !slices.Contains(cases, got[0]) || !slices.Contains(cases, got[1]) {
			t.Fatalf("hash %q: %v of %v", hash, got, cases)
		}
		if again := Of(t, 2, cases...); !slices.Equal(got, again) {
			t.Errorf("hash %q: %v, then %v", hash, got, again)
		}
		seen[got[0]], seen[got[1]] = true, true
	}
	if len(seen) != len(cases) {
		t.Errorf("15 hashes reach %d of %d cases", len(seen), len(cases))
	}
	if got := Of(t, 9, cases...); !slices.Equal(got, cases) {
		t.Errorf("9 of 8 cases: %v", got)
	}
	t.Setenv(allVar, "all")
	if got := Of(t, 2, cases...); !slices.Equal(got, cases) {
		t.Errorf("all: %v", got)
	}
}

func TestTake(t *testing.T) {
	t.Setenv(allVar, "")
	t.Setenv(hashVar, "")
	if !Take(t, 1000) {
		t.Error("a test that is run by its name is left out")
	}
	taken := 0
	for hash := range 300 {
		t.Setenv(hashVar, strconv.Itoa(1+hash))
		if Take(t, 3) {
			taken++
		}
	}
	if taken < 70 || taken > 130 { // 100, and 3.7 standard deviations either way
		t.Errorf("%d of 300 hashes take one test of three", taken)
	}
	t.Setenv(allVar, "all")
	if !Take(t, 1000) {
		t.Error("a test is left out though all are wanted")
	}
}

// fatal is a test that records whether it failed.
type fatal struct {
	testing.TB
	failed bool
}

func (f *fatal) Helper()               {}
func (f *fatal) Fatalf(string, ...any) { f.failed = true }

// A number that means nothing fails the test, which would otherwise pass without doing anything.
func TestNumber(t *testing.T) {
	for text, want := range map[string]int{"": 7, "3": 3} {
		t.Setenv("WEFT_TIMES", text)
		if n := Number(t, "WEFT_TIMES", 7); n != want {
			t.Errorf("%q: %d, want %d", text, n, want)
		}
	}
	for _, text := range []string{"0", "-1", "many", "1e3"} {
		t.Setenv("WEFT_TIMES", text)
		f := fatal{TB: t}
		if Number(&f, "WEFT_TIMES", 7); !f.failed {
			t.Errorf("%q is taken", text)
		}
	}
}
