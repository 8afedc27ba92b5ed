package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A gate over lists judges what the two command lines ran or reused, and nothing else below their
// directories: not a lab that is gone, not a newer run of other settings. Moving lists and runs
// together changes nothing.
func TestListsHaveWhatACommandRan(t *testing.T) {
	t.Chdir(t.TempDir())
	lab := func(name, rest string) {
		write(t, name+".yaml", "weft: 1\nname: "+name+"\ntopology: {kind: star, hosts: 4}\n"+
			"workload: [{collective: permute, size: 64KB, jitter: 5us}]\n"+rest)
	}
	run := func(list string, args ...string) string {
		t.Helper()
		args = append([]string{"run", "--engine", "sim", "--resume", "--out", "runs", "--list", list}, args...)
		code, _, words := weft(t, orchestrated{}, args...)
		if code != exitOK {
			t.Fatal(code, words)
		}
		return words
	}
	gate := func(want int, says string, args ...string) {
		t.Helper()
		args = append([]string{"compare", "base.json", "new.json", "--fail-if", "worse"}, args...)
		if got := results(t, want, args...); !strings.Contains(got, says) {
			t.Errorf("%q: got %s", args, got)
		}
	}
	lab("a", "")
	lab("b", "sweep: {seed: [1, 2]}\n")
	run("base.json", "a.yaml", "b.yaml")
	if words := run("new.json", "a.yaml", "b.yaml"); !strings.Contains(words, "3 of 3 runs were finished before") {
		t.Errorf("got %s", words)
	}
	gate(exitOK, "none of")
	run("new.json", "a.yaml", "b.yaml", "--set", "topology.link.delay=1300ns")
	gate(exitMissed, "worse by more than 1%")
	run("new.json", "a.yaml")
	gate(exitMissed, "not compared: NEW lacks b seed=1: not run")
	gate(exitOK, "not compared: NEW lacks b seed=1: not run", "--partial")

	if err := os.Mkdir("moved", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"runs", "base.json", "new.json"} {
		if err := os.Rename(name, filepath.Join("moved", name)); err != nil {
			t.Fatal(err)
		}
	}
	results(t, exitOK, "compare", "moved/base.json", "moved/new.json", "--fail-if", "worse", "--partial")
	text, err := os.ReadFile("moved/base.json")
	if err != nil {
		t.Fatal(err)
	}
	write(t, "moved/new.json", strings.Replace(string(text), "runs/a/", "runs/other/", 1))
	got := results(t, exitMissed, "compare", "moved/base.json", "moved/new.json", "--fail-if", "worse")
	if !strings.Contains(got, "NEW lacks a: its directory runs/other/") {
		t.Errorf("got %s", got)
	}
}

// Labs that do not exist are skipped if the command line says so, each by its name, and then a
// comparison has them as new. Without the flag they are an error, and a lab inside the program is
// not missing.
func TestSkippedLabsAreNew(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "a.yaml", "weft: 1\nname: a\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 8KB}]\n")
	run := func(want int, list string, args ...string) string {
		t.Helper()
		args = append([]string{"run", "--engine", "sim", "--list", list, "--junit", "j.xml"}, args...)
		code, _, words := weft(t, orchestrated{}, args...)
		if code != want {
			t.Fatal(code, words)
		}
		return words
	}
	run(exitUsage, "base.json", "a.yaml", "missing.yaml")
	for _, c := range []struct {
		base []string
		none bool
	}{{[]string{"quickstart", "missing.yaml"}, false}, {[]string{"missing.yaml", "labs/*.yaml"}, true}} {
		words := run(exitOK, "base.json", append(c.base, "--skip-missing")...)
		if !strings.Contains(words, "skipped: missing.yaml does not exist here\n") ||
			strings.Contains(words, "no lab is left to run") != c.none {
			t.Errorf("%q: %s", c.base, words)
		}
		labs := []string{"a.yaml"}
		if !c.none {
			labs = append(labs, c.base[0])
		}
		run(exitOK, "new.json", labs...)
		for flag, want := range map[string]int{"--all": exitMissed, "--partial": exitOK} {
			got := results(t, want, "compare", "base.json", "new.json", "--fail-if", "worse", "--html", "c.html", flag)
			if !strings.Contains(got, "not compared: BASE lacks a: not run\n") {
				t.Errorf("%q: %s", c.base, got)
			}
		}
	}
	for text, says := range map[string]string{"": "has not ended", "{}": "not a list", "{": "damaged",
		`{"format": 99, "runs": []}`: "newer than"} {
		write(t, "base.json", text)
		if got := results(t, exitFailed, "compare", "base.json", "new.json", "--fail-if", "worse"); !strings.Contains(got, says) {
			t.Errorf("%q: %s", text, got)
		}
	}
}
