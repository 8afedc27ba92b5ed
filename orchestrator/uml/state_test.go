package uml

import (
	"bytes"
	"testing"
)

// Only the length next to the call changes. A program without exactly one such call stays as it is.
func TestWiden(t *testing.T) {
	const get, set = "\x88\x0a\x00\x00\xbf\x04\x42\x00\x00", "\x88\x0a\x00\x00\xbf\x05\x42\x00\x00"
	program := []byte("start" + get + "between" + set + "end")
	if !widen(program, 11008) {
		t.Error("the call was not found")
	}
	if want := "start" + get + "between\x00\x2b\x00\x00\xbf\x05\x42\x00\x00end"; string(program) != want {
		t.Errorf("got %q, want %q", program, want)
	}
	for _, other := range []string{"", get, set + set} {
		program := []byte(other)
		if widen(program, 11008) || !bytes.Equal(program, []byte(other)) {
			t.Errorf("%q became %q", other, program)
		}
	}
}

func TestStateSize(t *testing.T) {
	if n, err := stateSize(); err != nil || n != 0 && n < 512+64 { // FXSAVE's area and XSAVE's header
		t.Errorf("%d bytes, %v", n, err)
	}
}
