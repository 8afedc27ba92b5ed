package lab

import (
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	"gopkg.in/yaml.v3"

	"weft/internal/golden"
	"weft/internal/sandbox/sandboxtest"
)

// docs/lab-reference.md is what the schema says; `make reference` writes it anew.
func TestReferenceIsCurrent(t *testing.T) {
	golden.File(t, "../../docs/lab-reference.md", string(Reference()))
}

// rowsOfReference returns the rows of the page's tables by the path of their key.
func rowsOfReference() map[string]string {
	rows, section := map[string]string{}, ""
	for line := range strings.Lines(string(Reference())) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && line[0] == '#' {
			section = strings.TrimSpace(title)
			if section == topTitle {
				section = ""
			}
		}
		if key, ok := strings.CutPrefix(line, "|`"); ok {
			keys, _, _ := strings.Cut(key, "|")
			for key := range strings.SplitSeq(keys, ", ") {
				rows[pattern(join(section, strings.Trim(key, "`")))] = line
			}
		}
	}
	return rows
}

// rowOf returns the row of a key, where it refers to another section's key that one's.
func rowOf(rows map[string]string, path string) string {
	row := rows[path]
	if _, other, ok := strings.Cut(row, "|as in ["); ok {
		section, _, _ := strings.Cut(other, "]")
		_, name := parentOf(path)
		row = rows[pattern(join(section, name))]
	}
	return row
}

// Every default of the table is on the page, at its key.
func TestReferenceHasEveryDefault(t *testing.T) {
	rows := rowsOfReference()
	for path, d := range defaults {
		if row := rowOf(rows, path); !strings.Contains(row, "|`"+d.text+"`") {
			t.Errorf("the default of %s, %s, is not shown: %q", path, d.text, row)
		}
	}
	for path, text := range map[string]string{ // of presets, and of code beside the table
		"transport.roce.rp_timer": "300us", "clocks.ptp.interval": "1ms", "queues.shared.alpha": "0.125", "background.burst": "16",
	} {
		if row := rowOf(rows, path); !strings.Contains(row, "|`"+text+"`") {
			t.Errorf("the default of %s, %s, is not shown: %q", path, text, row)
		}
	}
}

// Every key of the schema has a description, and a row on the page that has it.
func TestReferenceHasEveryKey(t *testing.T) {
	text, rows, keys := string(Reference()), rowsOfReference(), 0
	var walk func(path string, s *jsonschema.Schema)
	walk = func(path string, s *jsonschema.Schema) {
		for _, o := range objects(s) {
			for k := o.Properties.Oldest(); k != nil; k = k.Next() {
				keys++
				cell := inCell(k.Value.Description)
				if path == "" && (k.Key == "expect" || k.Key == "sweep") {
					cell += "\n"
				} else {
					cell += "|\n"
				}
				found := false
				for line := range strings.Lines(text) {
					found = found || strings.HasSuffix(line, cell) && (strings.Contains(line, "`"+k.Key+"`") || !strings.HasPrefix(line, "|"))
				}
				if other, ok := strings.CutPrefix(strings.TrimSuffix(k.Value.Description, "."), "As "); ok && !found {
					section, key := parentOf(other)
					found = key == k.Key && rows[other] != "" && strings.Contains(text, "|as in ["+section+"]")
				}
				if !found || k.Value.Description == "" {
					t.Errorf("%s: %q is not on the page", join(path, k.Key), k.Value.Description)
				}
				walk(join(path, k.Key), k.Value)
			}
		}
	}
	walk("", reflected())
	if keys < 300 {
		t.Errorf("%d keys", keys)
	}
}

// Every section has an example, and every example is a part of a valid lab.
func TestExamplesOfTheReference(t *testing.T) {
	const rest = "weft: 1\nname: lab\ntopology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4}\n" +
		"workload: [{collective: all-reduce, size: 16MB}]\n"
	schema := compileSchema(t)
	module := sandboxtest.Module{Event: sandboxtest.Answer(100_000), Text: strings.Replace(sandboxtest.Plain, "[]",
		`[{"name":"gain","about":"A gain.","kind":"number","min":0,"max":1,"default":"1"}]`, 1)}.Bytes()
	read := func(string) ([]byte, error) { return module, nil }
	for path, example := range sectionExamples {
		var lab, part map[string]any
		if err := yaml.Unmarshal([]byte(rest), &lab); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(example), &part); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if top, _, _ := strings.Cut(path, "."); top != "" && (len(part) != 1 || part[top] == nil) {
			t.Errorf("the example of %s is about something else:\n%s", path, example)
		}
		for k, v := range part {
			lab[k] = v
		}
		text, err := yaml.Marshal(lab)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("example", text, Options{Read: read}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if err := schema.Validate(asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for line := range strings.Lines(string(Reference())) {
		if section, ok := strings.CutPrefix(strings.TrimPrefix(line, "#"), "## "); ok {
			section = strings.TrimSpace(section)
			if section != "Types" && section != topTitle && sectionExamples[section] == "" {
				t.Errorf("section %s has no example", section)
			}
		}
	}
}

// What the reference says of thresholds whose default depends on the transport is so.
func TestReferenceTellsDefaultsOfRoCE(t *testing.T) {
	said := map[string]string{}
	for _, k := range Keys() {
		said[k.Path] = k.About
	}
	for _, transport := range []string{"{kind: roce}", "{kind: ccm}"} {
		text := "weft: 1\nname: lab\ntopology: {kind: star, hosts: 4}\ntransport: " + transport + "\n"
		for _, s := range mustParse(t, text, Options{})[0].Sources {
			if name, ok := strings.CutPrefix(s.Path, "queues.ecn."); ok && name != "mark" && !strings.Contains(said[s.Path], s.Value+")") {
				t.Errorf("%s: %s is %s; the reference says %q", transport, s.Path, s.Value, said[s.Path])
			}
		}
	}
}

// The page stays one that can be read: a quarter of what it once was, the bars of its tables aside.
// That was 3,850 words for 278 rows of keys.
func TestReferenceIsShort(t *testing.T) {
	page := string(Reference())
	words := len(strings.Fields(strings.NewReplacer("|", " ", "---", "").Replace(page)))
	if rows := strings.Count(page, "\n|`"); words*278 > 3850*rows {
		t.Errorf("%d words for %d rows; expected at most 3850 for 278", words, rows)
	}
}

// A footnote is of one source: those of all defaults have names of their own, which do not depend
// on each other.
func TestFootnotesAreApart(t *testing.T) {
	sources := map[string]string{}
	for path, d := range allDefaults() {
		if ownSource.MatchString(d.source) {
			continue
		}
		note, source := noteOf(inCell(d.source)), inCell(d.source)
		if other, ok := sources[note]; ok && other != source {
			t.Errorf("%s: footnote %s is of %q and of %q", path, note, other, source)
		}
		sources[note] = source
	}
	if len(sources) < 40 {
		t.Errorf("%d sources; expected at least 40", len(sources))
	}
}
