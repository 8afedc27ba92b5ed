package main

import (
	"encoding/json"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/sandbox/sandboxtest"
	"weft/results/record"
	"weft/results/store"
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

// flip changes one byte of a file.
func flip(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text[len(text)/2] ^= 0x55
	return os.WriteFile(file, text, 0o644)
}

// --resume repeats a run whose files were removed, cut or changed since, and names it: its results
// are not there.
func TestResumeSeesDamagedRuns(t *testing.T) {
	dir := t.TempDir()
	lab, root := filepath.Join(dir, "again.yaml"), filepath.Join(dir, "runs")
	write(t, lab, "weft: 1\nname: again\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 8KB}]\n")
	cut := func(file string) error { return os.Truncate(file, 100) }
	for i, step := range []struct {
		damage func(file string) error
		name   string
		reused bool
	}{
		{nil, "", false}, {nil, "", true},
		{cut, "flows.parquet", false}, {nil, "", true},
		{os.Remove, "flows.parquet", false}, {nil, "", true},
		{flip, "flows.parquet", false}, {nil, "", true},
		{flip, "ports.parquet", false}, {flip, "lab.yaml", false},
		{flip, "summary.json", false}, {nil, "", true},
	} {
		if step.damage != nil { // of every run, since any that is whole is reused
			files, err := filepath.Glob(filepath.Join(root, "again", "2*", step.name))
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
		if says := "repeated, since an earlier run is damaged: "; strings.Contains(told, says) != (step.damage != nil) ||
			!strings.Contains(told, step.name) {
			t.Errorf("run %d: got %s, want the damage of %q", i, told, step.name)
		}
	}
}

// --resume with --strict repeats emulations whose fidelity it does not accept, and says so. Without
// it, it says how many such runs it reuses; of several runs of a point it takes the best.
func TestResumeKnowsFidelities(t *testing.T) {
	lab, root := fourSeeds(t, ""), filepath.Join(t.TempDir(), "runs")
	again := func(says string, flags ...string) {
		t.Helper()
		args := append([]string{"run", lab, "--engine", "sim", "--out", root, "--resume", "--quiet"}, flags...)
		code, _, told := weft(t, orchestrated{}, args...)
		var lines []string
		for line := range strings.Lines(told) {
			if strings.Contains(line, "finished before") {
				lines = append(lines, line)
			}
		}
		if got := strings.Join(lines, ""); got != says || code != exitOK && code != exitFidelity {
			t.Errorf("%q, exit code %d: got %q, want %q", flags, code, got, says)
		}
	}
	again("")
	files, err := filepath.Glob(filepath.Join(root, "four", "[0-9]*", store.SummaryFile))
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	for i, verdict := range []string{record.Invalid, record.Degraded, record.Unjudged} {
		dir := filepath.Dir(files[i])
		s, err := store.ReadSummary(dir)
		m, merr := store.ReadManifest(dir)
		if err != nil || merr != nil {
			t.Fatal(err, merr)
		}
		s.Fidelity = &record.Fidelity{Verdict: verdict, BaseRTTNS: 1, LatenessP99NS: 1}
		text := rewrite(t, files[i], s)
		for k := range m.Files {
			if f := &m.Files[k]; f.Name == store.SummaryFile {
				f.Bytes, f.Sum = int64(len(text)), crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli))
			}
		}
		rewrite(t, filepath.Join(dir, store.ManifestFile), m)
	}
	again("4 of 4 runs were finished before and are not repeated, although the fidelity of 3 is not ok; " +
		"--strict repeats such runs\n")
	const repeated = " of 4 runs were finished before with a fidelity that --strict does not accept, and are repeated\n"
	again("2 of 4 runs were finished before and are not repeated, although the fidelity of 1 is not ok; "+
		"--strict repeats such runs\n2"+repeated, "--strict=degraded")
	again("3 of 4 runs were finished before and are not repeated\n1"+repeated, "--strict")
	again("4 of 4 runs were finished before and are not repeated\n", "--strict")
	again("4 of 4 runs were finished before and are not repeated\n")
}

// rewrite writes a value as JSON, and returns the text.
func rewrite(t *testing.T, path string, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(text))
	return text
}
