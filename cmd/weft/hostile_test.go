package main

import (
	"encoding/json"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/results/store"
)

// hostile changes the terminal, ends its line, and turns the direction of text.
const hostile = "\x1b]0;x\x07\x1b[2J\u009b31m\u202e<b>"

// poison appends hostile to every text of a JSON value. Statuses and names of files keep theirs at
// first: what they lead to is poisoned as well.
func poison(v any, key string, all bool) any {
	switch v := v.(type) {
	case string:
		if !all && (key == "status" || key == "name" || key == "run" || key == "sweep" || key == "id" || key == "series" || key == "verdict") {
			return v
		}
		return v + hostile
	case []any:
		for i := range v {
			v[i] = poison(v[i], key, all)
		}
	case map[string]any:
		for k := range v {
			v[k] = poison(v[k], k, all)
		}
	}
	return v
}

// No text of a foreign run reaches the terminal with control characters in it, whichever field has
// it and whichever verb prints it.
func TestForeignTextsReachNoTerminal(t *testing.T) {
	for _, all := range []bool{false, true} {
		t.Chdir(t.TempDir())
		write(t, "s.yaml", "weft: 1\nname: s\ntopology: {kind: star, hosts: 4, link: {delay: 1us}}\nworkload: [{collective: permute, size: 64KB, jitter: 5us}]\n"+
			"sweep: {seed: [1, 2], workload.0.size: [16KB, 32KB]}\nexpect: [drops == 1]\n")
		if code, _, words := weft(t, orchestrated{}, "run", "s.yaml", "--engine", "sim", "--out", "runs"); code != exitMissed {
			t.Fatal(code, words)
		}
		spoil := func(path string, last func(map[string]any)) []byte {
			text, err := os.ReadFile(path)
			var v map[string]any
			if err != nil || json.Unmarshal(text, &v) != nil {
				t.Fatal(err, path)
			}
			poison(v, "", all)
			if last != nil {
				last(v)
			}
			text, err = json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, string(text))
			return text
		}
		dirs, _ := filepath.Glob("runs/s/2*")
		for _, dir := range dirs {
			summary := spoil(filepath.Join(dir, store.SummaryFile), nil)
			spoil(filepath.Join(dir, store.ManifestFile), func(m map[string]any) {
				for _, f := range m["files"].([]any) {
					if f := f.(map[string]any); strings.HasPrefix(f["name"].(string), store.SummaryFile) {
						f["name"], f["bytes"], f["crc32c"] = store.SummaryFile, len(summary), crc32.Checksum(summary, crc32.MakeTable(crc32.Castagnoli))
					}
				}
			})
		}
		sweeps, _ := filepath.Glob("runs/s/sweep-*")
		spoil(filepath.Join(sweeps[0], store.SweepFile), nil)
		run, other, sweep := dirs[0], dirs[1], sweeps[0]
		for _, c := range []struct {
			args    string
			foreign bool // it prints foreign texts
		}{
			{"results ls --out runs", true}, {"results ls --out runs --json", true},
			{"results show s --out runs", true}, {"results show s --out runs --json", true},
			{"results show " + run, true}, {"results show " + sweep, true},
			{"results compare " + run + " " + other + " --all", true},
			{"results compare " + run + " " + other + " --json --fail-if worse", true},
			{"results compare s --by workload.0.size --all --out runs", true},
			{"results compare " + sweep + " s --out runs", true},
			{"results plot " + run, false}, {"results export " + run + " flows csv", false},
			{"results export " + run + " perfetto", false}, {"view " + run + " --file v.html", false},
			{"run s.yaml --engine sim --out runs --resume --summary s.md --junit j.xml", false},
		} {
			code, stdout, stderr := weft(t, orchestrated{}, strings.Fields(c.args)...)
			said := stdout + stderr
			if strings.ContainsAny(said, "\x1b\x07\u009b\u202e") {
				t.Errorf("%s: %.2000q", c.args, said)
			}
			// Where statuses and names are as they should be, every verb does its work.
			if !all && (code != exitOK && code != exitMissed || c.foreign != strings.ContainsRune(said, '\ufffd')) {
				t.Errorf("%s: exit code %d; it printed no foreign text, or did though it should have none: %.2000q", c.args, code, said)
			}
		}
		for _, file := range []string{filepath.Join(run, "report.html"), "v.html", "s.md", "j.xml"} {
			text, err := os.ReadFile(file)
			if err != nil && !(all && file == "v.html") {
				t.Error(err)
			}
			if strings.ContainsAny(string(text), "\x1b\x07\u009b\u202e") || file != "s.md" && strings.Contains(string(text), "x<b>") {
				t.Errorf("%s has texts of the run as they are", file)
			}
		}
		// A manifest without checksums does not switch them off.
		spoil(filepath.Join(other, store.ManifestFile), func(m map[string]any) { delete(m, "files") })
		if got := results(t, exitFailed, "show", other); !strings.Contains(got, "has no checksum of it") {
			t.Errorf("without files: %s", got)
		}
	}
}
