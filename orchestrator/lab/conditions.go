package lab

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/internal/clip"
	"weft/internal/nearest"
	"weft/internal/plural"
	"weft/params"
	"weft/results/expect"
	"weft/units"
)

// conditions decides which expectations of the labs of a file apply: those without a condition such
// as "when transport.kind == roce", and those whose condition holds. Its parts compare a setting
// with == or != and are joined by "and". Parts after the first false one may be about settings that
// only some runs have.
type conditions struct {
	report *report
	labs   []*Lab
	values map[*Lab]map[string]string // settings by path
	known  map[[2]string]meaning      // by path and value as conditions write them
	// try reads a lab again with a value at a path, into another report.
	try func(r *report, l *Lab, path []string, value *node) *Lab
	// plain reads the labs of the file without the command line; nil: it changes none.
	plain func() []*Lab
}

// meaning is what a value of a condition means.
type meaning struct {
	shown string // as a lab would show it
	err   error  // why no lab can have it; nil: one can
}

// settle moves the expectations of each lab whose condition does not hold to Unmet.
func (c *conditions) settle() {
	c.values, c.known = map[*Lab]map[string]string{}, map[[2]string]meaning{}
	for _, l := range c.labs {
		applies := l.Expect[:0:0]
		for _, e := range l.Expect {
			why, err := c.unmet(l, &e)
			switch {
			case err != nil:
				c.report.add(e.origin(), fmt.Sprintf("expect.%d", e.Index), "%v", err)
			case why == "":
				applies = append(applies, e)
			default:
				e.Why = why
				l.Unmet = append(l.Unmet, e)
			}
		}
		l.Expect = applies
		l.warnUnmeasured()
		l.warnIdleMeasures()
	}
}

// decide settles the expectations, unless the file has other problems, and reports conditions that
// no point of a sweep meets, and conditions of the command line that none of its runs meets. Where
// some are left out, the command that chose them has read all. A condition of the file is excused
// if points met it before the command line changed or took them.
func (c *conditions) decide(some bool) {
	if c.report.total > 0 {
		for _, l := range c.labs {
			l.Expect = slices.DeleteFunc(l.Expect, func(e Expectation) bool { return e.When != "" })
		}
		return
	}
	if c.settle(); some || c.plain == nil && len(c.labs) < 2 {
		return
	}
	unmet := slices.DeleteFunc(Unmet(c.labs), func(e Expectation) bool { return e.When == "" })
	if len(unmet) == 0 {
		return
	}
	excused := func(Expectation) bool { return false }
	if c.plain != nil {
		before := c.plain()
		excused = func(e Expectation) bool { return e.Flag == "" && (len(before) < 2 || Meets(before, e)) }
	}
	for _, e := range unmet {
		if !excused(e) {
			none := "no point of the sweep meets"
			if e.Flag != "" {
				none = "no run of this command meets"
			}
			c.report.add(e.origin(), fmt.Sprintf("expect.%d", e.Index), "%v", &expect.Error{Offset: e.WhenAt,
				Msg: fmt.Sprintf("%s the condition %q, so nothing judges this line: %s", none,
					clip.Text(e.When), e.Why)})
		}
	}
}

// Meets reports whether one of the labs meets the condition of an expectation.
func Meets(labs []*Lab, e Expectation) bool { return len(Meeting(labs, e)) > 0 }

// Meeting returns the labs that meet the condition of an expectation.
func Meeting(labs []*Lab, e Expectation) (all []*Lab) {
	for _, l := range labs {
		if slices.ContainsFunc(l.Expect, func(x Expectation) bool { return x.Index == e.Index && x.When == e.When }) {
			all = append(all, l)
		}
	}
	return all
}

// reasons is the number of labs' reasons that Unmet lists. Ours.
const reasons = 4

// Unmet returns the expectations whose condition none of the labs meets, with what the labs have
// instead.
func Unmet(labs []*Lab) (all []Expectation) {
	type line struct {
		index int
		when  string
	}
	met := map[line]bool{}
	for _, l := range labs {
		for _, e := range l.Expect {
			met[line{e.Index, e.When}] = true
		}
	}
	why := map[line][]string{}
	for _, l := range labs {
		for _, e := range l.Unmet {
			at := line{e.Index, e.When}
			if met[at] || slices.Contains(why[at], e.Why) {
				continue
			}
			if why[at] == nil {
				all = append(all, e)
			}
			why[at] = append(why[at], e.Why)
		}
	}
	for i := range all {
		whys := why[line{all[i].Index, all[i].When}]
		if n := len(whys) - reasons; n > 0 {
			whys = append(whys[:reasons:reasons], fmt.Sprintf("%d others", n))
		}
		all[i].Why = plural.Or(whys)
	}
	return all
}

// unmet returns the part of an expectation's condition that does not hold for a lab, as what the
// lab has instead; "" if all hold. If the lab leaves open the engine that the condition names, it
// becomes that of the expectation.
func (c *conditions) unmet(l *Lab, e *Expectation) (why string, err error) {
	if e.When == "" {
		return "", nil
	}
	offset := e.WhenAt
	for part := range strings.SplitSeq(e.When, " and ") {
		blank := len(part) - len(strings.TrimLeft(part, " "))
		at := offset + blank
		offset += len(part) + len(" and ")
		bad := func(at int, format string, args ...any) error {
			return &expect.Error{Offset: at, Msg: fmt.Sprintf(format, args...)}
		}
		path, want, equal := strings.Cut(part, "==")
		if !equal {
			path, want, _ = strings.Cut(part, "!=")
		}
		path, want = strings.TrimSpace(path), strings.TrimSpace(want)
		if path == "" || want == "" {
			return "", bad(at, "%q is not a condition; expected a setting and a value such as "+
				"transport.kind == roce", clip.Text(part))
		}
		value, ok := c.settings(l)[path]
		if !ok {
			return "", bad(at, "the condition names the unknown setting %q%s; `weft explain` lists all settings",
				clip.Text(path), hintAt(path, slices.Sorted(maps.Keys(c.settings(l)))))
		}
		if engine := openEngine(path, value, want, equal); engine != "" {
			e.Engine = engine
			continue
		}
		same := sameValue(value, want)
		if !same {
			m := c.meaning(l, path, want)
			if m.err != nil {
				return "", bad(at-blank+strings.LastIndex(part, want), "%v", m.err)
			}
			same = sameValue(value, m.shown)
		}
		if same != equal {
			return path + " is " + clip.Text(value), nil
		}
	}
	return "", nil
}

// openEngine returns the engine in which a part of a condition holds if only the run decides that;
// "" for any other part.
func openEngine(path, value, want string, equal bool) string {
	other, ok := map[string]string{"sim": "emu", "emu": "sim"}[want]
	switch {
	case path != "engine.kind" || value != "auto" && value != both || !ok:
		return ""
	case equal:
		return want
	}
	return other
}

// settings returns the settings of a lab by path.
func (c *conditions) settings(l *Lab) map[string]string {
	if c.values[l] == nil {
		c.values[l] = make(map[string]string, len(l.Sources))
		for _, s := range l.Sources {
			c.values[l][s.Path] = s.Value
		}
	}
	return c.values[l]
}

// meaning returns what a value that a lab does not have at a path means there.
func (c *conditions) meaning(l *Lab, path, want string) meaning {
	key := [2]string{path, want}
	if m, ok := c.known[key]; ok {
		return m
	}
	m := meaning{shown: want}
	if !slices.ContainsFunc(c.labs, func(l *Lab) bool {
		value, ok := c.settings(l)[path]
		return ok && sameValue(value, want)
	}) {
		m = c.read(l, path, want)
	}
	c.known[key] = m
	return m
}

// read reads a value in the place of that of a lab at a path.
func (c *conditions) read(l *Lab, path, want string) meaning {
	r := newReport(c.report.file)
	names, err := splitPath(path)
	value := load(r, []byte(want), func(int, int) origin { return origin{} })
	if err != nil || value == nil {
		return meaning{err: fmt.Errorf("the condition compares %s with %q, which is not a value", path,
			clip.Text(want))}
	}
	other := c.try(r, l, names, value)
	for _, p := range r.found {
		if p.Path == path || strings.HasPrefix(p.Path, path+".") {
			return meaning{err: fmt.Errorf("no run meets the condition %s == %s: %s", path, clip.Text(want), p.Message)}
		}
	}
	if i := slices.IndexFunc(other.Sources, func(s Source) bool { return s.Path == path }); i >= 0 {
		return meaning{shown: other.Sources[i].Value}
	}
	return meaning{shown: want}
}

// hintAt returns a hint at the path most like one that is unknown, or "".
func hintAt(path string, known []string) string {
	best, hint := max(1, len(path)/3)+1, ""
	for _, k := range known {
		if d := nearest.Edits(path, k); d < best {
			best, hint = d, didYouMean(k)
		}
	}
	return hint
}

// sameValue reports whether two texts are the same value, even if they write a quantity
// differently: 0s and 0ns, 50% and 0.5.
func sameValue(a, b string) bool {
	return a == b || sameAs(units.ParseTime, a, b) || sameAs(units.ParseBytes, a, b) ||
		sameAs(units.ParseBandwidth, a, b) || sameAs(params.OrPercent(parseNumber), a, b)
}

// sameAs reports whether parse reads the same value from both texts.
func sameAs[T comparable](parse func(string) (T, error), a, b string) bool {
	x, err := parse(a)
	if err != nil {
		return false
	}
	y, err := parse(b)
	return err == nil && x == y
}
