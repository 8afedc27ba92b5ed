package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/internal/plural"
	"weft/results/record"
	"weft/transport"
)

// maxSettings is the number of differing settings that SettingsDiff names.
const maxSettings = 8

// SettingsDiff names the settings that differ between two sides, with their values on both; empty
// if none does. If the lab file or the command line set any of them, it only counts the defaults
// that differ. It ignores the seed, name, description and report key of a lab. Other builds of a
// module, and another content of a file of programs, count as a setting.
func SettingsDiff(a, b Side) string {
	va, vb := a.settings(), b.settings()
	var written, derived []string
	paths := maps.Clone(va)
	maps.Copy(paths, vb)
	for path := range paths {
		x, y := va[path], vb[path]
		if slices.Contains([]string{"seed", "name", "about", "report"}, path) || x.text() == y.text() {
			continue
		}
		text := fmt.Sprintf("%s %s / %s", path, x.text(), y.text())
		if x.written || y.written {
			written = append(written, text)
		} else {
			derived = append(derived, text)
		}
	}
	written = append(written, contentDiff(a, b)...)
	shown, more := written, len(derived)
	if len(written) == 0 {
		shown, more = derived, 0
	}
	if len(shown) == 0 {
		return ""
	}
	slices.Sort(shown)
	n := min(len(shown), maxSettings)
	text := "settings that differ (A / B): " + strings.Join(shown[:n], "; ")
	if left := len(shown) - n; left > 0 {
		text += fmt.Sprintf("; and %d more", left)
	}
	if more > 0 {
		text += "; and " + plural.Count(more, "default")
	}
	return text
}

// ControllerNote says that a controller helps the senders of one side, by which settings, and how
// to measure without it, if the transport of the other side knows no such help. It is empty for
// other comparisons.
func ControllerNote(a, b Side) string {
	for i, side := range []Side{a, b} {
		other := []Side{b, a}[i].settings()
		if note := side.helped(fmt.Sprintf("%c", 'A'+i), "the other side has none", other); note != "" {
			return note
		}
	}
	return ""
}

// SweepControllerNote returns ControllerNote's warning for the points of a sweep, "" unless some of
// them use a transport without such a controller.
func SweepControllerNote(runs []*record.Summary) string {
	var side Side
	var names []string
	others := false
	for _, s := range runs {
		if s.Run == "" || s.Transport == record.Programs {
			continue
		}
		r, err := Load(s.Run)
		if err != nil {
			continue
		}
		one := Side{r}
		if one.helped("", "", nil) != "" {
			side = append(side, r)
			if !slices.Contains(names, s.Transport) {
				names = append(names, s.Transport)
			}
		} else if !slices.ContainsFunc(slices.Collect(maps.Keys(one.settings())), isHelp) {
			others = true
		}
	}
	if !others {
		return ""
	}
	return side.helped("runs of "+strings.Join(names, ", "), "the other transports have none", nil)
}

// helped returns the note that a controller helps the senders of a side, which is called where; ""
// if none does. It leaves out settings that the other side has as well; others says what the other
// side lacks.
func (s Side) helped(where, others string, other map[string]settingValues) string {
	var by, without []string
	for path, v := range s.settings() {
		h, known := helpAt(path)
		_, both := other[path]
		helps := func(value string) bool { return slices.Contains(h.Values, value) }
		if known && !both && slices.ContainsFunc(v.values, helps) {
			by = append(by, path+": "+v.text())
			without = append(without, "--set "+path+"="+h.Without)
		}
	}
	if len(by) == 0 {
		return ""
	}
	slices.Sort(by)
	slices.Sort(without)
	return fmt.Sprintf("note: in %s a controller that knows all flows helps senders (%s), and %s; to measure without "+
		"it: %s", where, strings.Join(by, ", "), others, strings.Join(without, " "))
}

// helpAt returns the help that the setting at a path stands for, if any.
func helpAt(path string) (h transport.Help, known bool) {
	names := strings.Split(path, ".") // of a section, of the transport's in it, of the key
	for _, h := range transport.FactsOf(names[max(0, len(names)-2)]).Help {
		if h.Key == names[len(names)-1] {
			return h, true
		}
	}
	return h, false
}

// isHelp reports whether a setting decides whether a controller helps senders.
func isHelp(path string) bool {
	_, known := helpAt(path)
	return known
}

// contentDiff names the modules and the files of programs that both sides have, with other content,
// with their hashes.
func contentDiff(a, b Side) (diff []string) {
	other := b.contents()
	for name, x := range a.contents() {
		if y, both := other[name]; both && x.text() != y.text() {
			diff = append(diff, fmt.Sprintf("%s (sha256) %s / %s", name, x.text(), y.text()))
		}
	}
	return diff
}

// contents returns the hashes of modules and files of programs over the runs of a side, by what has
// that content.
func (s Side) contents() map[string]settingValues {
	all := map[string]settingValues{}
	add := func(what, hash string) {
		v := all[what]
		if !slices.Contains(v.values, hash) {
			v.values = append(v.values, hash)
		}
		all[what] = v
	}
	for _, r := range s {
		if r.Manifest == nil {
			continue
		}
		if m := r.Manifest.Module; m != nil {
			add("build of module "+m.Name, m.Short())
		}
		for _, f := range r.Manifest.ProgramFiles {
			add("file "+f.File+" of programs", cmp.Or(f.Short(), "unknown"))
		}
	}
	return all
}

// Setting returns the value of a setting in a side, by its path as Split takes it: "roce". It is
// the path itself if no run has it.
func (s Side) Setting(what string) string {
	path, _, _ := strings.Cut(what, "=")
	all := s.settings()
	for _, p := range []string{path, path + ".kind"} {
		if v, ok := all[p]; ok && len(v.values) > 0 {
			return v.text()
		}
	}
	return path
}

// settingValues are the values of one setting over the runs of a side.
type settingValues struct {
	values  []string
	written bool // by the lab file, its sweep or the command line
}

func (v settingValues) text() string {
	slices.Sort(v.values)
	return cmp.Or(strings.Join(v.values, ", "), "-")
}

// settings collects the values of each setting over the runs of a side.
func (s Side) settings() map[string]settingValues {
	all := map[string]settingValues{}
	for _, r := range s {
		if r.Manifest == nil {
			continue
		}
		for _, one := range r.Manifest.Settings {
			if r.Manifest.Transport() == record.Programs && strings.HasPrefix(one.Path, "transport.") {
				continue // nothing used it; newer manifests leave it out
			}
			v := all[one.Path]
			if !slices.Contains(v.values, one.Value) {
				v.values = append(v.values, one.Value)
			}
			v.written = v.written || !strings.HasPrefix(one.From, "default")
			all[one.Path] = v
		}
	}
	return all
}
