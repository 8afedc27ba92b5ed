package wasm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"weft/internal/clip"
	"weft/params"
	"weft/units"
)

// Description is a module's description of itself, as JSON (docs/module-abi.md). Load has checked
// it: names and texts may be shown, and every default is within the range of its parameter.
type Description struct {
	Name      string  `json:"name"`
	About     string  `json:"about"`     // a sentence
	ECN       bool    `json:"ecn"`       // its packets may be marked
	CNP       bool    `json:"cnp"`       // it handles congestion notification packets
	INT       bool    `json:"int"`       // it reads telemetry
	Start     bool    `json:"start"`     // it handles the start of a message
	Sent      bool    `json:"sent"`      // it handles packets that have left
	Selective bool    `json:"selective"` // selective repeat is its default recovery
	Error     string  `json:"error"`     // why it cannot be used
	Params    []Param `json:"params"`

	stateSize int // bytes of the state of a connection
}

// Param is a parameter as the module declares it. It becomes a key of transport.wasm.
type Param struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`    // of kinds
	Min     number   `json:"min"`     // in the base unit of the kind; not of gain, rate, flag, choice
	Max     number   `json:"max"`     // likewise
	Default string   `json:"default"` // as a lab file has it
	About   string   `json:"about"`   // a sentence
	Source  string   `json:"source"`  // of the default, such as a paper
	Zero    string   `json:"zero"`    // word that stands for 0; "": none
	Words   []string `json:"words"`   // of a choice
}

// number is a number, or a text such as "0x3ff0000000000000" with the bits of a float64.
type number float64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		bits, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
		*n = number(math.Float64frombits(bits))
		return err
	}
	return json.Unmarshal(data, (*float64)(n))
}

// keyName matches the names of parameters.
var keyName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// maxWords bounds the words of a choice, and maxSentence every text of a description.
const (
	maxWords    = 64
	maxSentence = 300
)

// parseDescription reads the description of a module, and returns an error that names what is wrong
// in it.
func parseDescription(text []byte) (Description, error) {
	var d Description
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return d, fmt.Errorf("its description: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return d, errors.New("its description continues after its end")
	}
	switch {
	case d.Error != "":
		return d, errors.New(clean(d.Error))
	case !params.NameText.MatchString(d.Name):
		return d, fmt.Errorf("it calls itself %q; expected a name of letters a-z, digits and -", clip.Text(d.Name))
	case !plain(d.About):
		return d, fmt.Errorf("%s: its sentence is not printable, or longer than %d bytes", d.Name, maxSentence)
	case len(d.Params) > maxParams:
		return d, fmt.Errorf("%s: %d parameters are more than %d", d.Name, len(d.Params), maxParams)
	}
	seen := make(map[string]bool)
	for _, p := range d.Params {
		if err := p.check(); err != nil {
			return d, fmt.Errorf("%s: parameter %q: %w", d.Name, clip.Text(p.Name), err)
		}
		if seen[p.Name] {
			return d, fmt.Errorf("%s: parameter %q is declared twice", d.Name, p.Name)
		}
		seen[p.Name] = true
	}
	return d, nil
}

// check returns an error that says what is wrong with the declaration of a parameter, or nil.
func (p Param) check() error {
	lo, hi := float64(p.Min), float64(p.Max)
	const exact = 1 << 53 // whole numbers up to here are float64s
	switch {
	case !keyName.MatchString(p.Name):
		return errors.New("expected a name of letters a-z, digits and _")
	case !plain(p.About) || !plain(p.Source) || !plain(p.Zero) || !plain(p.Default):
		return fmt.Errorf("its texts are not printable, or longer than %d bytes", maxSentence)
	}
	switch p.Kind {
	case "number", "share", "integer", "time", "bytes":
		if !(lo >= 0 && lo <= hi && hi <= exact) {
			return fmt.Errorf("its range is %v to %v; expected at least 0 and at most 2^53", lo, hi)
		}
		whole := p.Kind != "number" && p.Kind != "share"
		if whole && (lo != math.Trunc(lo) || hi != math.Trunc(hi)) {
			return fmt.Errorf("its range is %v to %v; expected whole numbers", lo, hi)
		}
	case "gain", "rate", "flag":
	case "choice":
		if len(p.Words) < 1 || len(p.Words) > maxWords ||
			slices.ContainsFunc(p.Words, func(w string) bool { return !params.NameText.MatchString(w) }) {
			return fmt.Errorf("expected 1 to %d words of letters a-z, digits and -", maxWords)
		}
	default:
		return fmt.Errorf("unknown kind %q; expected %s", clip.Text(p.Kind), strings.Join(kinds, ", "))
	}
	s := slot{param: p} // for the range and the kind of the default
	if _, err := s.value().Set(p.Default, false); err != nil {
		return fmt.Errorf("its default: %w", err)
	}
	return nil
}

// kinds are the kinds of parameters.
var kinds = []string{"number", "share", "gain", "integer", "time", "bytes", "rate", "flag", "choice"}

// plain reports whether a text of a module may be shown.
func plain(s string) bool { return len(s) <= maxSentence && s == clean(s) }

// clean returns a text without what must not be shown.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if clip.Forbidden(c) || c == utf8.RuneError {
			return -1
		}
		return c
	}, s)
}

// Section has the parameters of a module as keys of a lab file. It implements params.Section.
type Section struct {
	module *Module
	slots  []slot
}

// slot holds the value of a parameter, in the field of its kind.
type slot struct {
	param  Param
	number float64
	whole  int
	time   units.Time
	bytes  units.Bytes
	rate   params.Rate
	flag   bool
	word   string
}

// Section returns the parameters of the module, without values.
func (m *Module) Section() *Section {
	s := &Section{module: m, slots: make([]slot, len(m.Params))}
	for i, p := range m.Params {
		s.slots[i].param = p
	}
	return s
}

// Keys implements params.Section. A nil section has none.
func (s *Section) Keys() []params.Key {
	if s == nil {
		return nil
	}
	keys := make([]params.Key, len(s.slots))
	for i := range s.slots {
		p := s.slots[i].param
		source := "module " + s.module.Name
		if p.Source != "" {
			source += ": " + p.Source
		}
		keys[i] = params.New(p.Name, s.slots[i].value(), p.About).Default(p.Default, source)
	}
	return keys
}

// Values returns the values of the parameters.
func (s *Section) Values() []Value {
	if s == nil {
		return nil
	}
	values := make([]Value, len(s.slots))
	for i := range s.slots {
		values[i] = s.slots[i].get()
	}
	return values
}

// set stores values that another process read.
func (s *Section) set(values []Value) {
	for i := range s.slots {
		s.slots[i].put(values[i])
	}
}

// value returns the kind of value of the slot, bound to it.
func (s *slot) value() params.Value {
	p := &s.param
	lo, hi := float64(p.Min), float64(p.Max)
	switch p.Kind {
	case "share":
		return or(params.Share(&s.number, lo, hi), p.Zero)
	case "gain":
		return or(params.Gain(&s.number), p.Zero)
	case "integer":
		return or(params.Integer(&s.whole, int(lo), int(hi)), p.Zero)
	case "time":
		return or(params.Time(&s.time, units.Time(lo), units.Time(hi)), p.Zero)
	case "bytes":
		return or(params.Bytes(&s.bytes, units.Bytes(lo), units.Bytes(hi)), p.Zero)
	case "rate":
		return or(params.LineRate(&s.rate), p.Zero)
	case "flag":
		return params.Flag(&s.flag)
	case "choice":
		return params.Word(&s.word, p.Words...)
	default:
		return or(params.Decimal(&s.number, lo, hi), p.Zero)
	}
}

// or accepts a word for 0, if there is one.
func or[T comparable](v params.Of[T], word string) params.Value {
	if word == "" {
		return v
	}
	var zero T
	return v.Or(word, zero)
}

// get returns the value of the slot.
func (s *slot) get() Value {
	switch s.param.Kind {
	case "integer":
		return Value{Number: float64(s.whole)}
	case "time":
		return Value{Number: float64(s.time)}
	case "bytes":
		return Value{Number: float64(s.bytes)}
	case "rate":
		return Value{Rate: s.rate}
	case "flag":
		return Value{Number: float64(bit(s.flag, 1))}
	case "choice":
		return Value{Number: float64(max(slices.Index(s.param.Words, s.word), 0))}
	default:
		return Value{Number: s.number}
	}
}

// put stores a value in the slot. A value that the slot cannot hold becomes one out of range, so
// that Check refuses it.
func (s *slot) put(v Value) {
	if !(v.Number >= 0 && v.Number <= 1<<53) {
		v.Number = -1
	}
	s.number, s.whole, s.time, s.bytes = v.Number, int(v.Number), units.Time(v.Number), units.Bytes(v.Number)
	s.rate, s.flag = v.Rate, v.Number != 0
	s.word = ""
	if i := int(v.Number); i >= 0 && i < len(s.param.Words) {
		s.word = s.param.Words[i]
	}
}
