package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"weft/collectives/graph"
	"weft/internal/clip"
)

// JSON decodes a file of JSON value by value, each within the bounds of Values. Every importer of
// JSON uses it: encoding/json takes the last value of a key that is there twice, and JSON refuses
// the file.
type JSON struct {
	*json.Decoder
	values *Values
}

// NewJSON returns a decoder for a file.
func NewJSON(file string, r io.Reader) *JSON {
	v := NewValues(file, &uniqueKeys{file: file, r: r})
	return &JSON{json.NewDecoder(v), v}
}

// More reports whether the current array or object has another value.
func (d *JSON) More() bool { d.values.Next(); return d.Decoder.More() }

// Token returns the next token.
func (d *JSON) Token() (json.Token, error) { d.values.Next(); return d.Decoder.Token() }

// Decode decodes the next value.
func (d *JSON) Decode(to any) error { d.values.Next(); return d.Decoder.Decode(to) }

// End returns an error unless the file ends after the values that were read.
func (d *JSON) End() error {
	switch _, err := d.Token(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return errors.New("the file continues after its value; expected its end")
}

// Place returns the byte at which an error of the decoder occurred, as far as it tells.
func (d *JSON) Place(err error) int64 {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return d.values.n - int64(d.values.space)
	case errors.As(err, &syntax):
		return max(d.InputOffset(), syntax.Offset) // the latter does not count tokens
	}
	return d.InputOffset()
}

// Bounds of objects that are open at an instant. The decoder keeps less of a file that it skips.
const (
	maxKeys  = 1 << 17 // of all open objects
	maxLevel = 10_000  // objects and arrays within each other, as in encoding/json
)

// uniqueKeys passes JSON on, up to the first key that is there twice in its object. It does not
// check the JSON otherwise: the decoder that reads from it does.
type uniqueKeys struct {
	file    string
	r       io.Reader
	n       int64             // bytes so far
	open    []map[string]bool // keys of each open object; nil: an array
	keys    int               // in open
	text    []byte            // of the string in progress that may be a key, from its quote on
	inText  bool
	escaped bool // by the last byte
	isKey   bool // the next or current string of the object is a key
	err     error
}

// Read implements io.Reader.
func (u *uniqueKeys) Read(b []byte) (int, error) {
	if u.err != nil {
		return 0, u.err
	}
	n, err := u.r.Read(b)
	for i, c := range b[:n] {
		if wrong := u.next(c); wrong != nil {
			u.err = &graph.Error{At: fmt.Sprintf("%s: byte %d", u.file, u.n+int64(i)), Err: wrong}
			return i, u.err
		}
	}
	u.n += int64(n)
	return n, err
}

// next handles a byte.
func (u *uniqueKeys) next(c byte) error {
	if u.inText {
		if u.isKey {
			u.text = append(u.text, c)
		}
		switch {
		case u.escaped:
			u.escaped = false
		case c == '\\':
			u.escaped = true
		case c == '"':
			u.inText = false
			if u.isKey {
				u.isKey = false
				return u.key()
			}
		}
		return nil
	}
	switch c {
	case '"':
		u.inText, u.text = true, append(u.text[:0], c)
	case '{', '[':
		if u.isKey = c == '{'; len(u.open) == maxLevel {
			return fmt.Errorf("values within each other %d times; expected fewer", maxLevel)
		}
		u.open = append(u.open, nil)
		if u.isKey {
			u.open[len(u.open)-1] = map[string]bool{}
		}
	case '}', ']':
		if last := len(u.open) - 1; last >= 0 {
			u.keys -= len(u.open[last])
			u.open = u.open[:last]
		}
		u.isKey = false
	case ',':
		u.isKey = len(u.open) > 0 && u.open[len(u.open)-1] != nil
	}
	return nil
}

// key handles a key of the innermost object, which has ended.
func (u *uniqueKeys) key() error {
	name := string(u.text[1 : len(u.text)-1])
	if json.Unmarshal(u.text, &name) != nil {
		return nil // the decoder refuses it
	}
	object := u.open[len(u.open)-1]
	if object[name] {
		return fmt.Errorf("key %s is there twice; expected it once", clip.Text(name))
	}
	object[name] = true
	if u.keys++; u.keys > maxKeys {
		return fmt.Errorf("objects with more than %d keys; expected fewer", maxKeys)
	}
	return nil
}
