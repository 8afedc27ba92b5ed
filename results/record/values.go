package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Lacks returns why a field of summary.json has no value, by its path such as
// network.retransmits; "" if it has one. A field lacks a value with all that it holds.
func (s *Summary) Lacks(path string) (why string) {
	for at := path; ; {
		if why, lacks := s.Unmeasured[at]; lacks {
			return why
		}
		cut := strings.LastIndexByte(at, '.')
		if cut < 0 {
			return ""
		}
		at = at[:cut]
	}
}

// LowerBound returns why the value of a field of summary.json is a lower bound of what it stands
// for; "" if it is the quantity itself.
func (s *Summary) LowerBound(path string) (why string) { return s.LowerBounds[path] }

// AtLeast says why the values of fields of summary.json are lower bounds of what they stand for;
// without a reason they are the quantities themselves. The first reason of a field stays.
func (s *Summary) AtLeast(why string, paths ...string) {
	for _, path := range paths {
		if why == "" || s.LowerBound(path) != "" {
			continue
		}
		if s.LowerBounds == nil {
			s.LowerBounds = map[string]string{}
		}
		s.LowerBounds[path] = why
	}
}

// OfPart says of fields of summary.json that they are of a part of what they stand for, and which.
// What a part counts is a lower bound, and so is the maximum of its distribution. Its mean and its
// quantiles say nothing about the whole: they have no value.
func (s *Summary) OfPart(why string, paths ...string) {
	distribution := reflect.TypeFor[Quantiles]()
	for _, path := range paths {
		if fieldAt(reflect.TypeFor[Summary](), path) != distribution {
			s.AtLeast(why, path)
			continue
		}
		s.AtLeast(why, path+".max")
		s.Lack("it is known "+why, path+".mean", path+".p50", path+".p99")
	}
}

// BesidePrograms is what PacketFields are in a run of programs and others: the reason for OfPart.
const BesidePrograms = "of collectives and flows alone, since nobody looks into the packets of programs"

// fieldAt returns the type of the field at a path of a struct; nil if there is none.
func fieldAt(of reflect.Type, path string) reflect.Type {
	for name := range strings.SplitSeq(path, ".") {
		if of.Kind() == reflect.Slice { // name is an index
			of = of.Elem()
			continue
		}
		f, ok := jsonField(of, name)
		if !ok {
			return nil
		}
		if of = f.Type; of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
	}
	return of
}

// jsonField returns the field of a struct that has a name in JSON.
func jsonField(of reflect.Type, name string) (f reflect.StructField, ok bool) {
	for i := range of.NumField() {
		f = of.Field(i)
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f, true
		}
	}
	return f, false
}

// Lack says why fields of summary.json have no value; without a reason they keep theirs. The first
// reason of a field stays.
func (s *Summary) Lack(why string, paths ...string) {
	for _, path := range paths {
		if why == "" || s.Lacks(path) != "" {
			continue
		}
		if s.Unmeasured == nil {
			s.Unmeasured = map[string]string{}
		}
		s.Unmeasured[path] = why
	}
}

// EndpointFields returns the paths of the fields of summary.json that Weft's own endpoints count.
func EndpointFields() []string {
	return append(PacketFields(), "flows.unfinished", "flows.bytes", "flows.fct_us", "flows.slowdown")
}

// PacketFields returns those of EndpointFields that are of packets: where programs send as well,
// they are of a part of the packets. Messages are Weft's alone.
func PacketFields() []string {
	return []string{"rtt_us", "network.data_packets", "network.retransmits", "network.timeouts",
		"network.reordered", "network.credits", "network.queue_delay_us"}
}

// OfEndpoints reports whether a field of summary.json is one that Weft's own endpoints count.
func OfEndpoints(path string) bool {
	return slices.ContainsFunc(EndpointFields(), func(f string) bool {
		return path == f || strings.HasPrefix(path, f+".")
	})
}

// notFinite is why a number that JSON cannot express has no value.
const notFinite = "the result is infinite or not a number"

// DropNonFinite takes their value from all numbers that are infinite or not a number, which JSON
// cannot express, and returns their paths.
func (s *Summary) DropNonFinite() (paths []string) {
	dropNonFinite(reflect.ValueOf(s).Elem(), "", &paths)
	s.Lack(notFinite, paths...)
	return paths
}

// dropNonFinite sets the numbers in v, whose path is at, that are not finite to 0, and adds their
// paths.
func dropNonFinite(v reflect.Value, at string, paths *[]string) {
	switch v.Kind() {
	case reflect.Float64:
		if f := v.Float(); math.IsInf(f, 0) || math.IsNaN(f) {
			v.SetFloat(0)
			*paths = append(*paths, at)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			dropNonFinite(v.Elem(), at, paths)
		}
	case reflect.Slice:
		for i := range v.Len() {
			dropNonFinite(v.Index(i), join(at, strconv.Itoa(i)), paths)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			dropNonFinite(v.Field(i), join(at, name), paths)
		}
	}
}

// absent is why a field has no value that has neither one nor a reason.
const absent = "the summary does not have it"

// LackAbsent takes their value from the fields that the text of a summary lacks, and that Weft
// writes always: they are not 0.
func (s *Summary) LackAbsent(text []byte) {
	var tree any
	if json.Unmarshal(text, &tree) == nil {
		s.lackAbsent(reflect.TypeOf(*s), tree, "")
	}
}

// lackAbsent takes their value from the fields of a type at a path that a tree lacks.
func (s *Summary) lackAbsent(of reflect.Type, tree any, at string) {
	switch of.Kind() {
	case reflect.Pointer:
		s.lackAbsent(of.Elem(), tree, at)
	case reflect.Slice:
		all, _ := tree.([]any)
		for i := range all {
			s.lackAbsent(of.Elem(), all[i], join(at, strconv.Itoa(i)))
		}
	case reflect.Struct:
		has, _ := tree.(map[string]any)
		for i := range of.NumField() {
			f := of.Field(i)
			name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
			path, kind := join(at, name), f.Type.Kind()
			switch {
			case name == "expect": // says itself what nobody measured
			case has[name] != nil:
				s.lackAbsent(f.Type, has[name], path)
			case option == "" && kind != reflect.String && kind != reflect.Slice && kind != reflect.Map:
				s.Lack(absent, path)
			}
		}
	}
}

// signed are the fields of summary.json whose quantities can be below 0: numbers that programs
// print or expectations compute, errors of clocks, instants of stalls that began before the
// workload. Their counts cannot.
var signed = []string{"metrics", "expect", "clocks", "fidelity"}

// Negative returns the path of a count, a time or another quantity of the summary that is below 0
// and cannot be; "" if there is none.
func (s *Summary) Negative() (path string) { return negative(reflect.ValueOf(s).Elem(), "", false) }

// negative returns the path of a negative number in v, whose path is at. With counts it looks at
// integers alone.
func negative(v reflect.Value, at string, counts bool) (path string) {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		if v.Int() < 0 {
			return at
		}
	case reflect.Float64:
		if v.Float() < 0 && !counts {
			return at
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return negative(v.Elem(), at, counts)
		}
	case reflect.Slice:
		for i := range v.Len() {
			if path = negative(v.Index(i), join(at, strconv.Itoa(i)), counts); path != "" {
				return path
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if name == "exit" { // code of a program: not a count
				continue
			}
			path = negative(v.Field(i), join(at, name), counts || slices.Contains(signed, name))
			if path != "" {
				return path
			}
		}
	}
	return ""
}

// join returns the path of what has a name in what is at a path.
func join(at, name string) string { return strings.TrimPrefix(at+"."+name, ".") }

// MarshalJSON returns the summary with null for each number and truth without a value.
func (s Summary) MarshalJSON() ([]byte, error) {
	type plain Summary
	text, err := encode(plain(s))
	if err != nil || len(s.Unmeasured) == 0 {
		return text, err
	}
	var out bytes.Buffer
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = s.copyJSON(d, &out, "")
	return out.Bytes(), err
}

// copyJSON copies the next value of d, which is at a path of the summary.
func (s *Summary) copyJSON(d *json.Decoder, out *bytes.Buffer, path string) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	open, nests := t.(json.Delim)
	if !nests {
		if _, is := t.(string); !is && s.Lacks(path) != "" {
			t = nil
		}
		text, err := encode(t)
		out.Write(text)
		return err
	}
	out.WriteRune(rune(open))
	for i := 0; d.More(); i++ {
		name := strconv.Itoa(i)
		if i > 0 {
			out.WriteByte(',')
		}
		if open == '{' {
			key, err := d.Token()
			if err != nil {
				return err
			}
			name = fmt.Sprint(key)
			text, err := encode(name)
			if err != nil {
				return err
			}
			out.Write(append(text, ':'))
		}
		if err := s.copyJSON(d, out, join(path, name)); err != nil {
			return err
		}
	}
	end, err := d.Token()
	out.WriteString(fmt.Sprint(end))
	return err
}

// MarshalJSON returns the expectation with null for a left side that was not looked at or has no
// value.
func (e Expect) MarshalJSON() ([]byte, error) {
	type plain Expect
	if !e.Unmeasured && !e.Skipped {
		return encode(plain(e))
	}
	return encode(struct {
		plain
		Got *float64 `json:"got"`
	}{plain: plain(e)})
}

// encode returns v as JSON in which <= stays readable.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Judged returns the number of expectations that were judged, and of those that were skipped.
func (s *Summary) Judged() (judged, skipped int) {
	for i := range s.Expect {
		if s.Expect[i].Skipped {
			skipped++
		}
	}
	return len(s.Expect) - skipped, skipped
}
