package fuzztest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Mutations are the same each time, mostly differ from the seeds and from each other, and have the
// types of the seeds.
func TestMutationsAreTheSameEachTime(t *testing.T) {
	draw := func() (all [][]any) {
		m := mutator{rand: rand.New(rand.NewPCG(1, 1)), seeds: [][]any{{[]byte("a packet of some bytes"), "text",
			uint16(7), true}, {[]byte{}, "", uint16(0), false}}}
		for range 200 {
			all = append(all, m.next())
		}
		return all
	}
	first := draw()
	if diff := cmp.Diff(first, draw()); diff != "" {
		t.Error(diff)
	}
	different := map[string]bool{}
	for _, args := range first {
		_, isBytes := args[0].([]byte)
		_, isText := args[1].(string)
		_, isNumber := args[2].(uint16)
		_, isBool := args[3].(bool)
		if !isBytes || !isText || !isNumber || !isBool {
			t.Fatalf("%T, %T, %T, %T", args[0], args[1], args[2], args[3])
		}
		different[fmt.Sprintf("%q", args)] = true
	}
	if len(different) < 180 {
		t.Errorf("%d of 200 mutations differ", len(different))
	}
}

// Seeds of testdata/fuzz are read as go test -fuzz writes them.
func TestReadsSeeds(t *testing.T) {
	for text, want := range map[string][]any{
		"go test fuzz v1\n[]byte(\"W\\x01(\\\"\")\n":      {[]byte("W\x01(\"")},
		"go test fuzz v1\nstring(\"a\")\nstring(\"b\")\n": {"a", "b"},
		"go test fuzz v1\nint(7)\n":                       nil,
	} {
		name := filepath.Join(t.TempDir(), "seed")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := read(name)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
	}
}

// A defect behind two bytes is found by mutating a seed that has one of them.
func FuzzFinds(f *testing.F) {
	corpus, found := New(f), false
	corpus.Add([]byte("W\x01\x01\x08, then a table"))
	f.Cleanup(func() {
		if !found && !fuzzing() { // workers fuzz, in processes of their own
			f.Error("no mutation has both flags")
		}
	})
	corpus.Fuzz(func(_ *testing.T, b []byte) {
		found = found || len(b) > 3 && b[0] == 'W' && b[3]&0x48 == 0x48
	})
}
