package params_test

import (
	"errors"
	"strings"
	"testing"

	"weft/params"
	"weft/units"
)

// shape is a section with one key of most kinds.
type shape struct {
	sides int
	round float64
	name  string
	wait  units.Time
	load  units.Bytes
	on    bool
	extra int
}

func (s *shape) Keys() []params.Key {
	return []params.Key{
		params.New("sides", params.Integer(&s.sides, 3, 12), "How many.").Default("4", "ours"),
		params.New("round", params.Share(&s.round, 0, 0.5), "How round.").Following(func() (string, string) {
			if s.sides == 12 {
				return "50%", "twelve sides are nearly round"
			}
			return "", ""
		}).Default("0", "ours"),
		params.New("name", params.Word(&s.name, "plain", "fancy"), "Which.").Default("plain", "ours"),
		params.New("wait", params.Time(&s.wait, units.Microsecond, units.Second).Or("off", 0), "How long.").Default("off", "ours"),
		params.New("load", params.Bytes(&s.load, 1, units.KB), "How much.").Default("1B", "ours"),
		params.New("on", params.Flag(&s.on), "Whether.").Default("yes", "ours"),
		params.New("extra", params.Integer(&s.extra, 1, 9), "More, of fancy ones.").Default("2", "ours").
			Only(func() (bool, string) { return s.name == "fancy", "applies to fancy" }),
	}
}

func TestDefaultsAreThoseDeclared(t *testing.T) {
	var s shape
	params.SetDefaults(&s)
	if want := (shape{sides: 4, name: "plain", load: 1, on: true}); s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
	s = shape{}
	keys := s.Keys()
	if _, err := keys[0].Value.Set("12", false); err != nil {
		t.Fatal(err)
	}
	if text, source := keys[1].Standard(); text != "50%" || source != "twelve sides are nearly round" {
		t.Errorf("the default that follows is %q, %q", text, source)
	}
}

// A text is read, shown as it would be written, or refused with what was expected.
func TestSet(t *testing.T) {
	var s shape
	for _, c := range []struct {
		key    int
		text   string
		quoted bool
		shown  string
		err    string
	}{
		{0, "3", false, "3", ""},
		{0, "2", false, "", `"2" is out of range; expected a whole number from 3 to 12`},
		{0, "3.5", false, "", `"3.5" is not a whole number; expected a whole number from 3 to 12`},
		{0, "3", true, "", `"3" in quotes is text, not a whole number; expected a whole number from 3 to 12`},
		{0, "99999999999999999999", false, "", `"99999999999999999999" is out of range; expected a whole number from 3 to 12`},
		{1, "25%", false, "0.25", ""},
		{1, "1", false, "", `"1" is out of range; expected 0 to 0.5`},
		{2, "fancy", true, "fancy", ""},
		{2, "fany", false, "", `unknown value "fany"; expected one of plain, fancy`},
		{3, "off", false, "off", ""},
		{3, "0.5s", false, "500ms", ""},
		{3, "1ns", false, "", `"1ns" is out of range; expected 1us to 1s`},
		{4, "0.5KB", false, "500B", ""},
		{5, "no", false, "false", ""},
		{5, "maybe", false, "", `"maybe" is neither true nor false`},
	} {
		shown, err := s.Keys()[c.key].Value.Set(c.text, c.quoted)
		if shown != c.shown || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %q is %q, %v", s.Keys()[c.key].Name, c.text, shown, err)
		}
	}
	var unknown *params.Unknown
	if _, err := s.Keys()[2].Value.Set("fany", false); !errors.As(err, &unknown) || len(unknown.Known) != 2 {
		t.Errorf("an unknown word: %v", err)
	}
}

// Values that came another way than by their text are held to the same ranges.
func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*shape){
		"":                   func(*shape) {},
		"shape: sides: 13":   func(s *shape) { s.sides = 13 },
		"shape: name: loud":  func(s *shape) { s.name = "loud" },
		"shape: wait: 2s":    func(s *shape) { s.wait = 2 * units.Second },
		"shape: extra: appl": func(s *shape) { s.extra = 1 },
		"shape: extra: 0 is": func(s *shape) { s.name = "fancy" },
	} {
		var s shape
		params.SetDefaults(&s)
		change(&s)
		err := params.Check("shape", &s)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
