package source

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// A key that is there twice in its object is refused at its place, however it is written and
// wherever the reads of the file end. The same key of two objects is not, nor is a value.
func TestKeysOfJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"a":2}`:              "f: byte 9: key a is there twice; expected it once",
		`{"a":{"b":1,"c":2,"b":3}}`:  "f: byte 20: key b is there twice; expected it once",
		`{"a":[{"b":1}],"a":2}`:      "f: byte 17: key a is there twice; expected it once",
		`{"ab":1,"\u0061b":2}`:       "f: byte 16: key ab is there twice; expected it once",
		`{"a\"":1,"b":[],"a\"":2}`:   `f: byte 20: key a" is there twice; expected it once`,
		`{"a":"b","b":"a"}`:          "",
		`{"a":["a","a",{"a":"a"}]}`:  "",
		`[{"a":1},{"a":1}]`:          "",
		`{"a":"{\"b\":1,\"b\":1}"}`:  "",
		`{"a":1,"b":{"a":1},"c":[]}`: "",
		`{} {}`:                      "the file continues after its value; expected its end",
		`{} x`:                       "invalid character 'x' looking for beginning of value",
		`}{"a":1`:                    "invalid character '}' looking for beginning of value",
	} {
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			var v any
			d := NewJSON("f", r)
			err := d.Decode(&v)
			if err == nil {
				err = d.End()
			}
			if got := errors.Join(err); want == "" && got != nil || want != "" && (got == nil || got.Error() != want) {
				t.Errorf("%s: %v; want %q", text, err, want)
			}
		}
	}
}

// Memory does not grow with an object that the decoder skips key by key.
func TestManyKeysOfJSON(t *testing.T) {
	var b strings.Builder
	b.WriteString("{")
	for i := range maxKeys + 1 {
		fmt.Fprintf(&b, `"%d":0,`, i)
	}
	d, err := NewJSON("f", strings.NewReader(b.String())), error(nil)
	for err == nil {
		_, err = d.Token()
	}
	if !strings.Contains(err.Error(), "objects with more than 131072 keys") {
		t.Error(err)
	}
}
