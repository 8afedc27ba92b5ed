// Package fuzztest adds a little fuzzing to ordinary test runs. A fuzz target that passes its seeds
// to a Corpus runs them, the files in testdata/fuzz, and a fixed number of mutations, the same in
// every run. Under go test -fuzz it is an ordinary fuzz target.
//
// go test -fuzz rebuilds the package with instrumentation and runs one target at a time, which
// takes minutes for all targets of the repository, and its findings differ from run to run.
package fuzztest

import (
	"encoding/binary"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mutations is the number of mutations that a test run tries per target.
const mutations = 500

// Corpus holds the seeds of a fuzz target.
type Corpus struct {
	f     *testing.F
	seeds [][]any
}

// New returns the corpus of a target, with the files in its directory of testdata/fuzz.
func New(f *testing.F) *Corpus {
	c := &Corpus{f: f}
	files, err := filepath.Glob(filepath.Join("testdata", "fuzz", f.Name(), "*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files { // go test runs these itself
		seed, err := read(name)
		if err != nil {
			f.Fatalf("%s: %v", name, err)
		}
		if len(seed) > 0 {
			c.seeds = append(c.seeds, seed)
		}
	}
	return c
}

// Add adds a seed.
func (c *Corpus) Add(args ...any) {
	c.seeds = append(c.seeds, args)
	c.f.Add(args...)
}

// Fuzz runs the target, like testing.F.Fuzz.
func (c *Corpus) Fuzz(target any) {
	if len(c.seeds) > 0 && !fuzzing() {
		name := fnv.New64a()
		name.Write([]byte(c.f.Name()))
		m := mutator{rand: rand.New(rand.NewPCG(name.Sum64(), 1)), seeds: c.seeds}
		for range mutations {
			c.f.Add(m.next()...)
		}
	}
	c.f.Fuzz(target)
}

// fuzzing reports whether the test runs under go test -fuzz.
func fuzzing() bool {
	option := flag.Lookup("test.fuzz")
	return option != nil && option.Value.String() != ""
}

// read reads a file in the format of go test -fuzz: one line per argument, such as []byte("...") or
// int(7). It supports strings, bytes and integers.
func read(name string) (seed []any, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range lines[1:] {
		kind, value, ok := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), ")"), "(")
		if !ok {
			return nil, fmt.Errorf("%q is no argument", line)
		}
		switch kind {
		case "[]byte", "string":
			s, err := strconv.Unquote(value)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			if kind == "string" {
				seed = append(seed, s)
			} else {
				seed = append(seed, []byte(s))
			}
		default:
			return nil, nil
		}
	}
	return seed, nil
}

// mutator derives new seeds from old ones.
type mutator struct {
	rand  *rand.Rand
	seeds [][]any
}

func (m *mutator) next() []any {
	seed := slices.Clone(m.seeds[m.rand.IntN(len(m.seeds))])
	for i, arg := range seed {
		switch v := arg.(type) {
		case []byte:
			seed[i] = m.bytes(v, i)
		case string:
			seed[i] = string(m.bytes([]byte(v), i))
		default:
			seed[i] = m.number(arg)
		}
	}
	return seed
}

// number mutates a numeric or boolean argument.
func (m *mutator) number(arg any) any {
	v := reflect.New(reflect.TypeOf(arg)).Elem()
	v.Set(reflect.ValueOf(arg))
	if m.rand.IntN(4) == 0 {
		return arg
	}
	switch {
	case v.CanInt():
		v.SetInt([]int64{v.Int() + 1, -v.Int(), 0, 1 << m.rand.IntN(64), m.rand.Int64()}[m.rand.IntN(5)])
	case v.CanUint():
		v.SetUint([]uint64{v.Uint() + 1, ^v.Uint(), 0, 1 << m.rand.IntN(64), m.rand.Uint64()}[m.rand.IntN(5)])
	case v.CanFloat():
		v.SetFloat(v.Float() * m.rand.NormFloat64())
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	}
	return v.Interface()
}

// bytes mutates an argument in a few places, as fuzzers do. argument is its position; it is crossed
// with the same argument of other seeds.
func (m *mutator) bytes(old []byte, argument int) []byte {
	b := slices.Clone(old)
	at := func() int { return m.rand.IntN(len(b)) }
	for range 1 + m.rand.IntN(6) {
		if len(b) == 0 {
			b = append(b, byte(m.rand.Uint32()))
			continue
		}
		switch i := at(); m.rand.IntN(10) {
		case 0:
			b[i] ^= 1 << m.rand.IntN(8)
		case 1:
			b[i] = byte(m.rand.Uint32())
		case 2:
			b[i] = []byte{0, 1, 0x7f, 0x80, 0xff}[m.rand.IntN(5)]
		case 3:
			b[i] += byte(m.rand.IntN(9)) - 4
		case 4: // remove bytes
			b = slices.Delete(b, i, min(len(b), i+1+m.rand.IntN(8)))
		case 5: // cut the end off
			b = b[:i]
		case 6: // repeat bytes
			b = slices.Insert(b, at(), b[i:min(len(b), i+1+m.rand.IntN(16))]...)
		case 7: // insert bytes
			var some [8]byte
			binary.LittleEndian.PutUint64(some[:], m.rand.Uint64())
			b = slices.Insert(b, i, some[:1+m.rand.IntN(8)]...)
		case 8: // a number at an end of its range
			var word [8]byte
			binary.BigEndian.PutUint64(word[:], []uint64{0, 1, 1 << 63, 1<<63 - 1, 1<<64 - 1,
				1 << 31 << 32}[m.rand.IntN(6)])
			copy(b[i:], word[:1<<m.rand.IntN(4)])
		default: // the end of another seed
			other := m.seeds[m.rand.IntN(len(m.seeds))][argument]
			var tail []byte
			switch o := other.(type) {
			case []byte:
				tail = o
			case string:
				tail = []byte(o)
			}
			if len(tail) > 0 {
				b = append(b[:i], tail[m.rand.IntN(len(tail)):]...)
			}
		}
	}
	return b
}
