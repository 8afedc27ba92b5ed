package state

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"reflect"
	"slices"
	"unsafe"

	"weft/units"
)

// Sum is the SHA-256 of a part of a state.
type Sum = [sha256.Size]byte

// State is a state as of an instant: what can influence what follows, relative to that instant, and
// the results so far.
type State struct {
	Sum    Sum            // of all parts
	Parts  map[string]Sum // by the part that tags name
	Counts []int64        // results, in the order of the walk
}

// others is the part of fields for which no tag names one.
const others = "other state"

// Capture captures the state of all roots, pointers to structs, as of now. It returns an error that
// names a type if a field of it needs a tag and has none.
func Capture(now units.Time, roots ...any) (*State, error) {
	w := &walk{now: now, parts: map[string]*part{}, part: &part{}}
	s := &State{}
	w.count = func(p unsafe.Pointer, size uintptr) { s.Counts = append(s.Counts, load(p, size)) }
	if err := w.all(roots); err != nil {
		return nil, err
	}
	s.Parts = make(map[string]Sum, len(w.parts))
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(w.parts)) {
		sum := w.parts[name].sum()
		s.Parts[name] = sum
		all.Write([]byte(name))
		all.Write(sum[:])
	}
	all.Sum(s.Sum[:0])
	return s, nil
}

// Uncompared is the error about a type whose state is not compared.
type Uncompared struct {
	Part string // of the state, in words of a user
	Why  error  // names the type
}

func (u *Uncompared) Error() string { return u.Part + ": the state of " + u.Why.Error() }

// Check returns the error that Capture returns of the roots.
func Check(roots ...any) error {
	w := &walk{checks: true, count: func(unsafe.Pointer, uintptr) {}}
	return w.all(roots)
}

// Repeat moves the roots on by a time in which the same happened several times: instants lie that
// much later, and each result has grown by times what it grew from one state to another. The roots
// must be those that were captured, and be in the same state apart from that.
func Repeat(from, to *State, times int64, by units.Time, roots ...any) error {
	i := 0
	w := &walk{by: by, moves: true}
	w.count = func(p unsafe.Pointer, size uintptr) {
		store(p, size, load(p, size)+times*(to.Counts[i]-from.Counts[i]))
		i++
	}
	return w.all(roots)
}

// Changed returns the names of the parts in which two states differ, in order.
func (s *State) Changed(t *State) (names []string) {
	for name, sum := range s.Parts {
		if t.Parts[name] != sum {
			names = append(names, name)
		}
	}
	for name := range t.Parts {
		if _, ok := s.Parts[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// load returns an integer of the given size. Unsigned ones wrap around, as their sums do.
func load(p unsafe.Pointer, size uintptr) int64 {
	switch size {
	case 4:
		return int64(*(*int32)(p))
	default:
		return *(*int64)(p)
	}
}

func store(p unsafe.Pointer, size uintptr, v int64) {
	switch size {
	case 4:
		*(*int32)(p) = int32(v)
	default:
		*(*int64)(p) = v
	}
}

// latest bounds instants: those beyond it, or as long before 0, stand for none, such as
// units.Never and units.LongAgo. No lab lasts that long.
const latest = units.Never / 2

// moves reports whether an instant is one, and not the absence of one.
func moves(at units.Time) bool { return at > -latest && at < latest }

// part hashes a part of a state.
type part struct {
	name string
	hash hash.Hash
	buf  []byte
}

func (p *part) sum() (s Sum) {
	p.hash.Write(p.buf)
	p.hash.Sum(s[:0])
	return s
}

// walk visits the fields of structs. It captures, counts values, or moves.
type walk struct {
	now   units.Time
	parts map[string]*part
	part  *part // that was written last

	moves bool
	by    units.Time

	word   [8]byte
	checks bool // only whether everything is known
	count  func(p unsafe.Pointer, size uintptr)
}

func (w *walk) all(roots []any) error {
	for _, r := range roots {
		v := reflect.ValueOf(r)
		if err := w.visit(planOf(v.Type().Elem(), byType), v.UnsafePointer(), others); err != nil {
			return err
		}
	}
	return nil
}

// visit visits what has a plan at an address.
func (w *walk) visit(p *plan, at unsafe.Pointer, name string) error {
	if p.err != nil {
		return &Uncompared{name, p.err}
	}
	for i := range p.fields {
		f := &p.fields[i]
		part := name
		if f.part != "" {
			part = f.part
		}
		if err := w.field(f, unsafe.Add(at, f.offset), part); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) field(f *field, at unsafe.Pointer, part string) error {
	switch f.what {
	case memory:
		w.put(part, at, f.size)
	case instant:
		w.instant((*units.Time)(at), part)
	case result:
		w.count(at, f.size)
	case values:
		v := (*sliceHeader)(at)
		w.number(part, uint64(v.len))
		w.put(part, v.data, uintptr(v.len)*f.size)
	case elements:
		return w.elements(f, at, f.n, part)
	case list:
		v := (*sliceHeader)(at)
		w.number(part, uint64(v.len))
		return w.elements(f, v.data, v.len, part)
	case pointer:
		to := *(*unsafe.Pointer)(at)
		w.number(part, uint64(bit(to != nil)))
		if to != nil {
			return w.visit(f.leadsTo(), to, part)
		}
	case dynamic:
		return w.dynamic(f, at, part)
	case never:
		if *(*unsafe.Pointer)(at) != nil {
			return &Uncompared{part, fmt.Errorf("%v is not compared", f.typ)}
		}
	}
	return nil
}

// dynamic visits what an interface holds: nothing, a pointer to a struct that is Resting, or a
// struct without fields.
func (w *walk) dynamic(f *field, at unsafe.Pointer, part string) error {
	v := reflect.NewAt(f.typ, at).Elem()
	if v.IsNil() {
		w.number(part, 0)
		return nil
	}
	v = v.Elem()
	t := v.Type()
	w.number(part, 1)
	if name := t.String(); !w.moves {
		w.put(part, unsafe.Pointer(unsafe.StringData(name)), uintptr(len(name)))
	}
	if t.Kind() == reflect.Struct && t.NumField() == 0 {
		return nil
	}
	if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		if p := planOf(t.Elem(), f.mode); p.rests {
			return w.visit(p, v.UnsafePointer(), part)
		}
	}
	return &Uncompared{part, fmt.Errorf("%v is not compared (it is not Resting)", t)}
}

func (w *walk) elements(f *field, first unsafe.Pointer, n int, part string) error {
	p := f.leadsTo()
	for i := range n {
		if err := w.visit(p, unsafe.Add(first, uintptr(i)*f.size), part); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) instant(at *units.Time, part string) {
	moves := moves(*at)
	if w.moves {
		if moves {
			*at += w.by
		}
		return
	}
	v := *at
	if moves {
		v -= w.now
	}
	w.number(part, uint64(bit(moves)))
	w.number(part, uint64(v))
}

func (w *walk) number(part string, v uint64) {
	if !w.moves {
		binary.LittleEndian.PutUint64(w.word[:], v)
		w.put(part, unsafe.Pointer(&w.word), uintptr(len(w.word)))
	}
}

// flushAt is the number of bytes that are hashed at a time.
const flushAt = 4096

// put adds memory to a part.
func (w *walk) put(name string, at unsafe.Pointer, size uintptr) {
	if w.checks || w.moves || size == 0 {
		return
	}
	p := w.part
	if p.name != name {
		if p = w.parts[name]; p == nil {
			p = &part{name: name, hash: sha256.New()}
			w.parts[name] = p
		}
		w.part = p
	}
	if p.buf = append(p.buf, unsafe.Slice((*byte)(at), size)...); len(p.buf) >= flushAt {
		p.hash.Write(p.buf)
		p.buf = p.buf[:0]
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sliceHeader is a slice, or a string with another word behind it, in memory.
type sliceHeader struct {
	data unsafe.Pointer
	len  int
}
