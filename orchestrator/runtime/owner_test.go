package runtime

import (
	"testing"

	"weft/internal/fuzztest"
)

// An owner survives formatting and parsing, is alive while its process runs, and differs from every
// other.
func TestOwner(t *testing.T) {
	o, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if back, ok := ParseOwner(o.String()); !ok || back != o || back.Dead() {
		t.Errorf("%v, %v", back, ok)
	}
	for _, dead := range []Owner{
		{o.UID, o.PID, o.Start + 1, o.Space, o.Boot}, {o.UID, o.PID, o.Start, o.Space, "another"}, {o.UID, 1 << 22, o.Start, o.Space, o.Boot},
	} {
		if !dead.Dead() {
			t.Errorf("%v is alive", dead)
		}
	}
	far := Owner{o.UID, 1 << 22, o.Start, o.Space + 1, o.Boot} // cannot be judged from here
	if far.Dead() {
		t.Errorf("%v, of another PID namespace, is dead", far)
	}
	for _, text := range []string{"", "1.2.3", "1.2.3.b", "1.2.3.4.", "x.2.3.4.b", "1.-2.3.4.b", "1.0.3.4.b", "1.2.-3.4.b", "1.2.3.-4.b", "1.2.3.4.b.c", "01.2.3.4.b", "-1.2.3.4.b"} {
		if o, ok := ParseOwner(text); ok {
			t.Errorf("%q is %v", text, o)
		}
	}
}

func FuzzParseOwner(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add("0.17.99.4026531836.c0ffee")
	corpus.Fuzz(func(t *testing.T, text string) {
		if o, ok := ParseOwner(text); ok && o.String() != text {
			t.Errorf("%q is read as %v", text, o)
		}
	})
}
