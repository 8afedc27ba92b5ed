package store

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"weft/internal/clip"
	"weft/internal/fuzztest"
	"weft/results/record"
)

// fill sets every text of a value, and makes one element of every list and map, to a depth that
// recursive types do not reach.
func fill(v reflect.Value, text string, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), text, depth-1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), text, depth)
			}
		}
	case reflect.Slice:
		if depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), text, depth-1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), text, depth)
		}
	case reflect.Map:
		if depth > 0 && v.Type().Key().Kind() == reflect.String {
			value := reflect.New(v.Type().Elem()).Elem()
			fill(value, text, depth-1)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf(text).Convert(v.Type().Key()), value)
		}
	case reflect.Interface:
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf(map[string]any{text: []any{text, map[string]any{text: text}}}))
		}
	case reflect.String:
		v.SetString(text)
	}
}

// texts calls see with every text of a value, and the name of the field that it is in.
func texts(v reflect.Value, field string, see func(field, text string)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			texts(v.Elem(), field, see)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			texts(v.Field(i), v.Type().Field(i).Name, see)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			texts(v.Index(i), field, see)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			texts(key, "key of "+field, see)
			texts(v.MapIndex(key), "value of "+field, see)
		}
	case reflect.String:
		see(field, v.String())
	}
}

// Readers of the JSON files of a run return no text with a character that clip forbids, whatever is
// in which field: ends of lines and tabs in those fields alone that may have several lines.
func FuzzTextsOfRuns(f *testing.F) {
	corpus := fuzztest.New(f)
	for _, text := range []string{"leaf0", "\x1b]0;x\x07\x1b[2J", "a\nok  b\tc\r", "\u009b31m\u202e\u2028\u2029\u200b", "\xff\x00\x7f"} {
		corpus.Add(text)
	}
	corpus.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		put := func(name string, v any) []byte {
			b, err := json.Marshal(v)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		var m record.Manifest
		var s record.Summary
		var sweep record.Sweep
		var n record.NetworkMap
		for _, v := range []any{&m, &s, &sweep, &n} {
			fill(reflect.ValueOf(v).Elem(), text, 6)
		}
		m.Format, s.Format = Format, Format
		summary := put(SummaryFile, &s)
		m.Files = []record.File{{Name: SummaryFile, Bytes: int64(len(summary)), Sum: checksum(summary)}}
		put(ManifestFile, &m)
		put(SweepFile, &sweep)
		put(NetworkFile, &n)
		gotM, err := ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		gotS, err := ReadSummary(dir)
		if err != nil {
			t.Fatal(err)
		}
		gotN, err := ReadNetwork(dir)
		if err != nil {
			t.Fatal(err)
		}
		found, _ := sweepRuns(dir)
		if len(found.Runs)+len(found.Lacking) != 1 {
			t.Fatalf("the sweep has %+v", found)
		}
		seen := 0
		for _, v := range []any{gotM, gotS, gotN, found.Lacking, found.Points} {
			texts(reflect.ValueOf(v), "", func(field, got string) {
				seen++
				for _, c := range got {
					if clip.Forbidden(c) && !(slices.Contains(severalLines, field) && (c == '\n' || c == '\t')) {
						t.Errorf("%T: %s has %q", v, field, got)
						return
					}
				}
				fine := utf8.ValidString(text) && strings.IndexFunc(text, clip.Forbidden) < 0
				if fine && !strings.ContainsRune(text, '\ufffd') && strings.ContainsRune(got, '\ufffd') {
					t.Errorf("%T: %s has %q, though nothing is forbidden in %q", v, field, got, text)
				}
			})
		}
		if seen < 100 {
			t.Errorf("only %d texts were seen", seen)
		}
	})
}
