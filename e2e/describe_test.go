package e2e

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// Commands that only tell: they succeed, say something, and create nothing.
func TestReadOnlyCommands(t *testing.T) {
	quickstart, incast := libraryLab(t, "quickstart.yaml"), libraryLab(t, "pc4/incast.yaml")
	for _, c := range []struct {
		args []string
		want []string // in what is printed
	}{
		{[]string{"validate", incast, quickstart}, []string{"quickstart.yaml: ok, 1 run", "incast.yaml: ok, 4 runs"}},
		{[]string{"validate", quickstart, "--json"}, []string{`"ok": true`}},
		{[]string{"explain", quickstart}, []string{"topology.k", "transport.pc4.target_qtime", "PC4"}},
		{[]string{"explain", quickstart, "--json"}, []string{`"settings"`}},
		{[]string{"explain", incast, "--set", "seed=3"}, []string{"seed"}},
		{[]string{"plan", quickstart}, []string{"TAP", "105 operations like these"}},
		{[]string{"plan", quickstart, "--json"}, []string{"h15"}},
		{[]string{"graph", quickstart}, []string{"h15", "fat-tree"}},
		{[]string{"graph", quickstart, "--format", "dot"}, []string{"graph", "h15"}},
		{[]string{"graph", quickstart, "--format", "mermaid"}, []string{"h15"}},
		{[]string{"graph", quickstart, "--format", "svg"}, []string{"<svg", "h15"}},
		{[]string{"graph", quickstart, "--json"}, []string{`"links"`}},
		{[]string{"schema"}, []string{"https://json-schema.org/draft/2020-12/schema"}},
		{[]string{"doctor", "--measure=false"}, []string{"namespaces", "TAP"}},
		{[]string{"doctor", "--measure=false", "--json"}, []string{`"state"`}},
		{[]string{"version"}, []string{"weft "}},
		{[]string{"version", "--json"}, []string{`"version"`}},
		{[]string{"--help"}, []string{"run", "validate", "doctor"}},
		{[]string{"run", "--help"}, []string{"--dilation", "Exit codes"}},
		{[]string{"completion", "bash"}, []string{"bash completion"}},
		{[]string{"completion", "zsh"}, []string{"compdef"}},
		{[]string{"completion", "fish"}, []string{"complete -c weft"}},
	} {
		t.Run(strings.ReplaceAll(strings.Join(c.args, " "), quickstart, "LAB"), func(t *testing.T) {
			before := takeTraces(t)
			d := newWorkspace(t)
			r := d.run(c.args...).wantCode(0)
			for _, w := range c.want {
				if !strings.Contains(r.stdout, w) {
					t.Errorf("it does not say %q:\n%s", w, r.stdout)
				}
			}
			last := c.args[len(c.args)-1]
			if last == "--json" || last == "schema" {
				if !json.Valid([]byte(r.stdout)) {
					t.Errorf("not JSON:\n%s", r.stdout)
				}
			}
			if last == "svg" {
				checkXML(t, r.stdout)
			}
			before.nothingLeft(t, nil, wait)
			d.checkClean()
		})
	}
}

// checkXML fails the test unless text is well-formed XML.
func checkXML(t *testing.T, text string) {
	t.Helper()
	in := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := in.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// The errors of validate are there for programs too.
func TestValidateTellsPrograms(t *testing.T) {
	d := newWorkspace(t)
	r := d.run("validate", d.writeLab("lab.yaml", "weft: 1\nname: x\nx: 1\n"), "--json").wantCode(2)
	var files []struct {
		File     string
		OK       bool
		Problems []struct {
			Line, Column int
			Message      string
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &files); err != nil {
		t.Fatalf("%v\n%s", err, r.stdout)
	}
	if len(files) != 1 || files[0].OK || len(files[0].Problems) == 0 {
		t.Fatalf("%+v", files)
	}
	found := false
	for _, p := range files[0].Problems {
		found = found || p.Line == 3 && p.Column == 1 && p.Message != ""
	}
	if !found {
		t.Errorf("the key x in line 3 is not among %+v", files[0].Problems)
	}
}
