package store

import (
	"reflect"
	"slices"
	"strings"
	"unicode"

	"weft/internal/clip"
)

// clean replaces every character that clip forbids in every text of a value that was read from a
// file, by U+FFFD. Files of runs may come from anybody, and their texts reach terminals, pages and
// reports. Texts that may have several lines keep the ends of their lines.
func clean(v reflect.Value, lines bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			clean(v.Elem(), lines)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			clean(v.Field(i), slices.Contains(severalLines, name))
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			clean(v.Index(i), lines)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			to, value := copied(key), copied(v.MapIndex(key))
			clean(to, false)
			clean(value, false)
			v.SetMapIndex(key, reflect.Value{})
			v.SetMapIndex(to, value)
		}
	case reflect.Interface:
		if !v.IsNil() {
			inner := copied(v.Elem())
			clean(inner, lines)
			v.Set(inner)
		}
	case reflect.String:
		v.SetString(cleanText(v.String(), lines))
	}
}

// severalLines are the fields whose texts may have several lines.
var severalLines = []string{"Error", "Value", "Set", "Command"}

// copied returns a copy that can be changed.
func copied(v reflect.Value) reflect.Value {
	to := reflect.New(v.Type()).Elem()
	to.Set(v)
	return to
}

// cleanText replaces forbidden characters of a text; lines keeps the ends of lines, and tabs.
func cleanText(text string, lines bool) string {
	return strings.Map(func(c rune) rune {
		if clip.Forbidden(c) && !(lines && (c == '\n' || c == '\t')) {
			return unicode.ReplacementChar
		}
		return c
	}, text)
}
