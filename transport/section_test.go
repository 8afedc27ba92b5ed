package transport

import (
	"testing"

	"weft/internal/sandbox/sandboxtest"
	"weft/params"
)

// A connection without settings recovers as a lab does by default, and a connection gets what its
// section says.
func TestSectionsHaveTheDefaultsOfAConnection(t *testing.T) {
	var s Selective
	params.SetDefaults(&s)
	if want := (Selective{0, DefaultThreshold, DefaultProbeAfter}); s != want {
		t.Errorf("selective repeat: %+v, want %+v", s, want)
	}
	for _, kind := range Kinds() {
		section, path, _ := SectionOf(kind)
		if s, ok := section.(params.Reading); ok { // its keys follow from a file
			s.ReadWith(func(string) ([]byte, error) { return sandboxtest.Module{Event: sandboxtest.Answer(9)}.Bytes(), nil })
			section.(params.Prescanner).Prescan(func(string) (string, bool) { return "a.wasm", true })
		}
		params.SetDefaults(section)
		if key, inside := InsideOf(section); key != "" {
			params.SetDefaults(inside)
		}
		var c Spec
		section.Set(&c)
		if err := c.CC.Check(); err != nil || c.Tries != DefaultTries || c.RTOMin != 0 || len(section.Keys()) == 0 {
			t.Errorf("%s (%s): %+v, %v", kind, path, c, err)
		}
	}
}
