package cc

import "unsafe"

// optional are the methods that a Controller may have besides its own, as Go has them, and how
// Serve finds them.
var optional = []struct {
	name, is string
	has      func(any) bool
}{
	{"Start", "Start(now cc.Time)", func(c any) bool { _, ok := c.(Starter); return ok }},
	{"Sent", "Sent(now cc.Time, p *cc.Sent)", func(c any) bool { _, ok := c.(Sender); return ok }},
	{"Notify", "Notify(now cc.Time)", func(c any) bool { _, ok := c.(Notified); return ok }},
	{"Timer", "Timer() cc.Time", func(c any) bool { _, ok := c.(interface{ Timer() Time }); return ok }},
	{"Expire", "Expire(now cc.Time)", func(c any) bool { _, ok := c.(interface{ Expire(Time) }); return ok }},
	{"Rate", "Rate() float64", func(c any) bool { _, ok := c.(Paced); return ok }},
	{"NotBefore", "NotBefore() cc.Time", func(c any) bool { _, ok := c.(Held); return ok }},
}

// mistaken returns what is wrong with the optional methods of a control: Weft would never call one
// that has other parameters or results, or half of a timer. value is the struct
// that c points to. It is empty if nothing is.
func mistaken(c, value any) string {
	has := map[string]bool{}
	for _, m := range optional {
		has[m.name] = m.has(c)
	}
	for _, name := range methods(c, value) {
		for _, m := range optional {
			if fold(name) == fold(m.name) && !has[m.name] {
				return "its method " + name + " is not one that Weft calls; expected " + m.is
			}
		}
	}
	switch {
	case has["Timer"] && !has["Expire"]:
		return "it has a method Timer, and no Expire(now cc.Time); expected both, or neither"
	case has["Expire"] && !has["Timer"]:
		return "it has a method Expire, and no Timer() cc.Time; expected both, or neither"
	}
	return ""
}

// fold returns a name in lower case.
func fold(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// The descriptions of a pointer type and its methods on machines of 64 bits, with what is read here
// (internal/abi: Type, PtrType, UncommonType, Method). Package reflect would double a module.
type (
	typeDesc struct {
		_         [2]uintptr
		_         uint32
		flags     uint8
		_         [3]uint8
		_         [2]uintptr
		_         int32
		toPointer int32 // offset of the description of a pointer to the type; 0: unknown
	}
	methodList struct {
		_             int32
		all, exported uint16
		offset        uint32
		_             uint32
	}
	methodDesc struct {
		name int32
		_    [3]int32
	}
)

// pointerDesc is the size of the description of a pointer type.
const pointerDesc = unsafe.Sizeof(typeDesc{}) + unsafe.Sizeof(uintptr(0))

// uncommon is the flag of types that have methods.
const uncommon = 1

// methods returns the exported methods of a control; none if they cannot be read. Offsets in the
// descriptions of types count from an address that follows from the two types.
func methods(c, value any) (names []string) {
	of := func(v any) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&v)) }
	pointer, elem := of(c), (*typeDesc)(of(value))
	if unsafe.Sizeof(uintptr(0)) != 8 || elem.toPointer <= 0 || (*typeDesc)(pointer).flags&uncommon == 0 {
		return nil
	}
	base := unsafe.Add(pointer, -int(elem.toPointer))
	list := (*methodList)(unsafe.Add(pointer, pointerDesc))
	for i := range int(list.exported) {
		offset := uintptr(list.offset) + uintptr(i)*unsafe.Sizeof(methodDesc{})
		m := (*methodDesc)(unsafe.Add(unsafe.Pointer(list), offset))
		at := unsafe.Add(base, m.name)
		// A byte of flags, the length, which has one byte for names below 128, and the name.
		if n := *(*uint8)(unsafe.Add(at, 1)); n < 128 {
			names = append(names, unsafe.String((*byte)(unsafe.Add(at, 2)), int(n)))
		}
	}
	return names
}
