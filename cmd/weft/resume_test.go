package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/sandbox/sandboxtest"
)

// --resume repeats a run if the content of a file that the lab names is another, although no
// setting changed.
func TestResumeSeesChangedFiles(t *testing.T) {
	dir := t.TempDir()
	module := func(window float64) string {
		return string(sandboxtest.Module{Event: sandboxtest.Answer(window)}.Bytes())
	}
	const hosts = "weft: 1\nname: again\ntopology: {kind: star, hosts: 4}\n"
	for _, c := range []struct {
		file, one, other string
		lab              string
	}{
		{"tiny.wasm", module(50_000), module(60_000), "workload: [{collective: incast, ranks: 2, size: 64KB}]\n" +
			"transport: {kind: wasm, wasm: {module: tiny.wasm}}\n"},
		{"step.csv", "collective,size\nall-reduce,4KB\n", "collective,size\nall-reduce,8KB\n", "workload: [{trace: step.csv}]\n"},
		{"m.cm", "Nodes 4\nConnections 1\n0->1 id 1 start 0 size 4000\n", "Nodes 4\nConnections 1\n0->1 id 1 start 0 size 5000\n",
			"workload: [{flows: m.cm}]\n"},
		{"job/0.goal", "num_ranks 2\nrank 0 {\nl1: send 100b to 1 tag 1\n}\nrank 1 {\nl1: recv 100b from 0 tag 1\n}\n",
			"num_ranks 2\nrank 0 {\nl1: send 200b to 1 tag 1\n}\nrank 1 {\nl1: recv 200b from 0 tag 1\n}\n",
			"workload: [{trace: job}]\n"},
	} {
		root := filepath.Join(dir, strings.ReplaceAll(c.file, "/", "-"))
		file, lab := filepath.Join(root, c.file), filepath.Join(root, "again.yaml")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, lab, hosts+c.lab)
		for i, step := range []struct {
			text   string
			reused bool
		}{{c.one, false}, {c.one, true}, {c.other, false}, {c.one, true}, {c.other, true}} {
			write(t, file, step.text)
			code, _, told := weft(t, orchestrated{}, "run", lab, "--engine", "sim", "--out", filepath.Join(root, "runs"),
				"--resume")
			if code != exitOK || strings.Contains(told, "1 of 1 runs were finished before") != step.reused {
				t.Errorf("%s, run %d: exit code %d; want reused: %t\n%s", c.file, i, code, step.reused, told)
			}
		}
	}
}

// --resume repeats a run whose files were removed or cut since: its results are not there.
func TestResumeSeesDamagedRuns(t *testing.T) {
	dir := t.TempDir()
	lab, root := filepath.Join(dir, "again.yaml"), filepath.Join(dir, "runs")
	write(t, lab, "weft: 1\nname: again\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 8KB}]\n")
	for i, step := range []struct {
		damage func(file string) error
		reused bool
	}{
		{nil, false}, {nil, true},
		{func(file string) error { return os.Truncate(file, 100) }, false}, {nil, true},
		{os.Remove, false}, {nil, true},
	} {
		if step.damage != nil { // of every run, since any that is whole is reused
			files, err := filepath.Glob(filepath.Join(root, "again", "*", "flows.parquet"))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			for _, file := range files {
				if err := step.damage(file); err != nil {
					t.Fatal(err)
				}
			}
		}
		code, _, told := weft(t, orchestrated{}, "run", lab, "--engine", "sim", "--out", root, "--resume")
		if code != exitOK || strings.Contains(told, "1 of 1 runs were finished before") != step.reused {
			t.Errorf("run %d: exit code %d; want reused: %t\n%s", i, code, step.reused, told)
		}
	}
}
