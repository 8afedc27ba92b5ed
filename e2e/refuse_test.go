package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/internal/quiettest"
)

// Everything that is wrong is one clear error, exit code 2, and nothing is created.
func TestBadInput(t *testing.T) {
	const good = "weft: 1\nname: good\ntopology: {kind: star, hosts: 2, link: {rate: 1Gbps, delay: " +
		"1us}}\nworkload: [{collective: all-to-all, size: 1KB}]\n"
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for i := range 12 {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", 'b'+i, 'b'+i, strings.Repeat(fmt.Sprintf("*%c, ", 'a'+i), 9))
	}
	for _, c := range []struct {
		name string
		lab  string   // text of lab.yaml; empty: there is none
		args []string // instead of run lab.yaml
		want []string // in what weft says
	}{
		{name: "no such file", args: []string{"run", "nothing.yaml"}, want: []string{"nothing.yaml", "no such file"}},
		{name: "a folder", args: []string{"run", "."}, want: []string{"is a directory"}},
		{name: "no end", args: []string{"run", "/dev/zero"}, want: []string{"/dev/zero"}},
		{name: "empty", lab: "\n", want: []string{"lab.yaml:1:1", "empty"}},
		{name: "not YAML", lab: "weft: [1\n", want: []string{"lab.yaml:"}},
		{name: "not text", lab: "\x7fELF\x02\x01\x01\x00\x00", want: []string{"lab.yaml:1:"}},
		{name: "unknown key", lab: good + "topologi: {}\n", want: []string{"lab.yaml:5:1", "topologi", `did you mean "topology"`}},
		{name: "two errors", lab: strings.NewReplacer("1Gbps", "1", "1KB", "0B").Replace(good),
			want: []string{"lab.yaml:3:", "lab.yaml:4:"}},
		{name: "bad sweep", lab: good + "sweep: {topology.hosts: [2, 1]}\n", want: []string{"lab.yaml:5:", "hosts"}},
		{name: "sweep of nothing", lab: good + "sweep: {topology.host: [2, 3]}\n", want: []string{"lab.yaml:5:",
			"topology.host"}},
		{name: "bad expectation", lab: good + "expect: [fct.p98 < 1us]\n", want: []string{"lab.yaml:5:", "fct.p98"}},
		{name: "name that leaves the folder", lab: strings.Replace(good, "good", "../good", 1),
			want: []string{"lab.yaml:2:", "../good"}},
		{name: "name that is a path", lab: strings.Replace(good, "good", "/tmp/good", 1),
			want: []string{"lab.yaml:2:"}},
		{name: "name that hides", lab: strings.Replace(good, "good", ".good", 1), want: []string{"lab.yaml:2:"}},
		{name: "10 MB", lab: good + "about: " + strings.Repeat("x", 10<<20) + "\n", want: []string{"lab.yaml"}},
		{name: "10 MB of list", lab: good + "expect: [" + strings.Repeat("x,", 5<<20) + "]\n",
			want: []string{"lab.yaml"}},
		{name: "alias bomb", lab: bomb, want: []string{"lab.yaml:", "alias"}},
		{name: "depth", lab: good + "expect: " + strings.Repeat("[", 100_000) + "\n", want: []string{"lab.yaml:"}},
		{name: "packets", lab: good + "measure: {packets: on}\n", want: []string{"lab.yaml:5:", "--capture HOST=FILE"}},
		{name: "one of two labs", lab: good, args: []string{"run", "--engine", "sim", "lab.yaml", "nothing.yaml"},
			want: []string{"nothing.yaml"}},
		{name: "--engine", lab: good, args: []string{"run", "lab.yaml", "--engine", "emulated"},
			want: []string{"--engine", "emulated"}},
		{name: "--dilation", lab: good, args: []string{"run", "lab.yaml", "--dilation", "0.5"},
			want: []string{"--dilation", "0.5"}},
		{name: "--runtime", lab: good, args: []string{"run", "lab.yaml", "--runtime", "podman"},
			want: []string{"podman", "docker"}},
		{name: "--set", lab: good, args: []string{"run", "lab.yaml", "--set", "topology.hosts=one"},
			want: []string{"--set", "topology.hosts"}},
		{name: "unknown flag", lab: good, args: []string{"run", "lab.yaml", "--engin", "sim"},
			want: []string{"--engin"}},
		{name: "unknown command", args: []string{"rum", "lab.yaml"}, want: []string{"rum"}},
		{name: "no lab", args: []string{"run"}, want: []string{"weft run --help"}},
		{name: "inside command", args: []string{"node"}, want: []string{"weft run"}},
		{name: "graph format", lab: good, args: []string{"graph", "lab.yaml", "--format", "png"},
			want: []string{"png", "svg"}},
		{name: "validate", lab: good + "x: 1\n", args: []string{"validate", "lab.yaml"},
			want: []string{"lab.yaml:5:1"}},
		{name: "explain", lab: good + "x: 1\n", args: []string{"explain", "lab.yaml"}, want: []string{"lab.yaml:5:1"}},
		{name: "plan", lab: good + "x: 1\n", args: []string{"plan", "lab.yaml"}, want: []string{"lab.yaml:5:1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newWorkspace(t)
			var files []string
			if c.lab != "" {
				files = append(files, d.writeLab("lab.yaml", c.lab))
			}
			args := c.args
			if args == nil {
				args = []string{"run", "lab.yaml"}
			}
			began := quiettest.Start()
			r := d.run(args...).wantCode(2)
			r.wantOnStderr(c.want...)
			if r.stdout != "" || len(r.stderr) > 4<<10 {
				t.Errorf("standard output holds %q, and standard error %d bytes", r.stdout, len(r.stderr))
			}
			began.AtMost(t, 10*time.Second, "the refusal")
			d.checkClean(files...)
		})
	}
}

// What keeps runs from being written is found before anything runs.
func TestNowhereToPutResults(t *testing.T) {
	d := newWorkspace(t)
	file := d.writeLab("file", "text")
	for _, out := range []string{file, filepath.Join(file, "runs"), "/proc/runs"} {
		r := d.run("run", libraryLab(t, "smoke/star.yaml"), "--engine", "sim", "--out", out).wantCode(2)
		r.wantOnStderr(strings.TrimSuffix(out, "/runs"))
	}
	d.checkClean(file)
}
