package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/internal/sandbox/sandboxtest"
	"weft/results/store"
)

// buildModule builds a module of examples/cc, below root, into dir.
func buildModule(t *testing.T, root, name, dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-ldflags=-s -w",
		"-o", filepath.Join(dir, name+".wasm"), "weft/examples/cc/"+name)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}

// dataFiles returns the data files of all runs below a folder: their content by run and name.
func dataFiles(t *testing.T, root string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	runs, err := filepath.Glob(filepath.Join(root, "*", "2*-*"))
	if err != nil || len(runs) == 0 {
		t.Fatalf("no runs in %s: %v", root, err)
	}
	for i, run := range runs {
		entries, err := os.ReadDir(run)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			switch filepath.Ext(e.Name()) {
			case ".csv", ".parquet", ".json", ".txt":
			default:
				continue
			}
			if e.Name() == store.ManifestFile || e.Name() == store.SummaryFile {
				continue // they name the transport
			}
			text, err := os.ReadFile(filepath.Join(run, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			files[fmt.Sprintf("%d/%s", i, e.Name())] = string(text)
		}
	}
	return files
}

// Swift and DCQCN as modules have the data files of the built-in ones, byte for byte.
func TestModulesAreTheBuiltInOnes(t *testing.T) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"swift", "dcqcn"} {
		buildModule(t, root, name, dir)
	}
	marks := []string{"queues.ecn.kmin=20KB", "queues.ecn.kmax=200KB", "queues.ecn.pmax=0.2", "queues.pfc=on"}
	for i, c := range []struct {
		lab, builtin, module string
		set                  []string
	}{
		{"smoke/incast", "swift", "swift", nil},
		{"smoke/incast", "swift", "swift", []string{"topology.hosts=65", "workload.0.ranks=64", "workload.0.size=1MB"}},
		{"smoke/leaf-spine", "swift", "swift", nil},
		{"smoke/permute", "swift", "swift", nil},
		{"smoke/dumbbell", "swift", "swift", nil},
		{"smoke/incast", "roce", "dcqcn", append([]string{"workload.0.size=20MB"}, marks...)},
		{"smoke/leaf-spine", "roce", "dcqcn", marks},
		{"smoke/permute", "roce", "dcqcn", marks},
		{"smoke/dumbbell", "roce", "dcqcn", marks},
	} {
		text, err := os.ReadFile(filepath.Join(root, "labs", c.lab+".yaml"))
		if err == nil {
			err = os.WriteFile("lab.yaml", text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		var got [2]map[string]string
		for k, set := range [][]string{
			{"transport.kind=" + c.builtin}, {"transport.kind=wasm", "transport.wasm.module=" + c.module + ".wasm"},
		} {
			out := fmt.Sprintf("out-%d-%d", i, k)
			args := []string{"run", "lab.yaml", "--engine", "sim", "--quiet", "--out", out}
			for _, s := range append(set, c.set...) {
				args = append(args, "--set", s)
			}
			if code, _, told := weft(t, orchestrated{}, args...); code != exitOK && code != exitMissed {
				t.Fatalf("%v: exit code %d\n%s", args, code, told)
			}
			got[k] = dataFiles(t, out)
		}
		if len(got[0]) < 2 || len(got[0]) != len(got[1]) {
			t.Errorf("%s: %d files under %s, %d under the module", c.lab, len(got[0]), c.builtin, len(got[1]))
		}
		for name, text := range got[0] {
			if got[1][name] != text {
				t.Errorf("%s %v: %s differs between %s and the module", c.lab, c.set, name, c.builtin)
			}
		}
	}
}

// The same control in Go, C and Rust has the same data files, with the compilers that are here.
func TestModulesOfOtherLanguages(t *testing.T) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	source := func(name string) string { return filepath.Join(root, "examples/cc", name) }
	var others []string
	for name, command := range map[string][]string{
		"c": {"clang", "--target=wasm32", "-O2", "-nostdlib", "-Wl,--no-entry", "-o", "c.wasm", source("c/aimd.c")},
		"rust": {"rustc", "--target", "wasm32-unknown-unknown", "--crate-type", "cdylib", "-O", "-C", "panic=abort",
			"-C", "strip=symbols", "-C", "linker=wasm-ld", "-o", "rust.wasm", source("rust/aimd.rs")},
	} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Logf("skipped: no module in %s: %v: %v\n%s", name, command[0], err, out)
			continue
		}
		others = append(others, name)
	}
	if len(others) == 0 {
		t.Skip("neither clang with wasm-ld nor rustc with wasm32-unknown-unknown")
	}
	buildModule(t, root, "aimd", dir)
	text, err := os.ReadFile(source("aimd/lab.yaml"))
	if err == nil {
		err = os.WriteFile("lab.yaml", text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	run := func(module string) map[string]string {
		code, _, told := weft(t, orchestrated{}, "run", "lab.yaml", "--engine", "sim", "--quiet", "--out", module,
			"--set", "sweep.transport.kind=[wasm]", "--set", "transport.wasm.module="+module+".wasm")
		if code != exitOK {
			t.Fatalf("%s: exit code %d\n%s", module, code, told)
		}
		return dataFiles(t, module)
	}
	want := run("aimd")
	for _, name := range others {
		if got := run(name); len(want) < 2 || !maps.Equal(got, want) {
			t.Errorf("data files differ between Go and %s", name)
		}
	}
}

// The commands of the page for newcomers work, in their order, from nothing to a comparison.
func TestYourOwnCongestionControl(t *testing.T) {
	page, err := filepath.Abs("docs/your-own-congestion-control.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv(store.RootVar, "")
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOPROXY", "off")
	var printed string
	ran := 0
	for line := range strings.Lines(string(text)) {
		code, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		if !ok {
			continue
		}
		first, rest, _ := strings.Cut(code, " ")
		switch {
		case first == "weft":
			var status int
			var told string
			if status, printed, told = weft(t, orchestrated{}, shellWords(t, rest)...); status != exitOK {
				t.Fatalf("%s: exit code %d\n%s%s", code, status, printed, told)
			}
		case first == "cd":
			t.Chdir(rest)
		case first == "go", strings.HasPrefix(first, "GOOS="):
			if out, err := exec.CommandContext(t.Context(), "sh", "-c", code).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", code, err, out)
			}
		case first == "transport":
			code, _, _ = strings.Cut(code, " ") // the numbers are those of the machine's Go
			if !strings.Contains(printed, code) || !strings.Contains(printed, "wasm") || !strings.Contains(printed, "swift") {
				t.Errorf("no comparison:\n%s", printed)
			}
		case strings.Contains(code, "its window is NaN"):
			brokenModule(t, code, loss, "{ c.window = 0 / (c.window - c.window) }", documented)
		case strings.Contains(code, "divide by zero"):
			brokenModule(t, code, loss, "{ println(1 / int(c.window-c.window)) }", documented)
		case strings.Contains(code, "its method Rate"):
			brokenModule(t, code, "func main() {}", "func main() {}\nfunc (c *controller) Rate() int64 { return 1 }", documented)
		case strings.Contains(code, "p[2]"):
			brokenModule(t, code, "= p[0], p[1]", "= p[0], p[2]+p[1]", documented)
		case strings.Contains(code, "it is a program"):
			brokenModule(t, code, loss, loss, strings.ReplaceAll(documented, " -buildmode=c-shared", ""))
		default:
			t.Errorf("no test executes %q", code)
		}
		ran++
	}
	if ran < 12 {
		t.Errorf("%d commands", ran)
	}
	// What a control prints is in a file of its run.
	restore := rebuild(t, "c.rtt = a.RTT", "println(\"rtt\", a.RTT)\n\tc.rtt = a.RTT", documented)
	defer restore()
	code, out, told := weft(t, orchestrated{}, "run", "lab.yaml", "--engine", "sim", "--out", "printed", "--set", "sweep.transport.kind=[wasm]")
	files, err := filepath.Glob("printed/mine/*/printed.log")
	if code != exitOK || len(files) != 1 || err != nil || !strings.Contains(out, "printed.log in the run's directory has 800 lines") {
		t.Fatalf("exit code %d, %d files, %v\n%s%s", code, len(files), err, out, told)
	}
	if text, err := os.ReadFile(files[0]); err != nil || !strings.HasPrefix(string(text), "h0 -> h8  5.") || !strings.Contains(string(text), "us  rtt ") {
		t.Errorf("%v, %.200s", err, text)
	}
}

// documented is the command of the page that builds a module, and loss what its control does after
// a loss.
const (
	documented = "GOOS=wasip1 GOARCH=wasm go build -trimpath -buildmode=c-shared -o mine.wasm ."
	loss       = "{ c.shrink(now) }"
)

// rebuild replaces a part of the control of the page and builds it, until restore is called.
func rebuild(t *testing.T, old, replacement, build string) (restore func()) {
	t.Helper()
	text, err := os.ReadFile("mine.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(old)) {
		t.Fatalf("mine.go has no %s", old)
	}
	if err := os.WriteFile("mine.go", bytes.Replace(text, []byte(old), []byte(replacement), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", build).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func() { _ = os.WriteFile("mine.go", text, 0o600) }
}

// brokenModule makes a mistake in the control of the page or its build, and expects the message
// that the page shows.
func brokenModule(t *testing.T, want, old, wrong, build string) {
	t.Helper()
	defer rebuild(t, old, wrong, build)()
	if code, _, told := weft(t, orchestrated{}, "validate", "lab.yaml"); code != exitUsage || !strings.Contains(told, want) {
		t.Errorf("exit code %d, %q; want %q", code, told, want)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("there", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"new", "expected weft new cc NAME"}, {"new thing x", "cannot make a"}, {"new cc", "expected one name"},
		{"new cc ../x", "is not a name"}, {"new cc My-CC", "is not a name"}, {"new cc there", "there exists"},
		{"new cc swift", "such as myswift"}, {"new cc func", "is a word that Go or Weft needs"}, {"new cc weft", "is a word"},
	} {
		if code, _, told := weft(t, &fake{}, strings.Fields(c.args)...); code != exitUsage || !strings.Contains(told, c.want) {
			t.Errorf("weft %s: exit code %d, %q; want %q", c.args, code, told, c.want)
		}
	}
	if entries, _ := os.ReadDir("."); len(entries) != 1 {
		t.Errorf("%d entries stay", len(entries))
	}
}

// writeModule writes a module of a few bytes and a lab that uses it.
func writeModule(t *testing.T, event []byte, keys string) {
	t.Helper()
	module := sandboxtest.Module{Event: event, Text: `{"name":"tiny","params":[{"name":"gain","kind":"share","min":0.1,"max":1,` +
		`"default":"50%","about":"How much."}]}`}
	lab := "weft: 1\nname: tiny\ntopology: {kind: star, hosts: 3}\n" +
		"workload: [{collective: incast, ranks: 2, size: 1MB}]\n" +
		"transport:\n  kind: wasm\n  wasm:\n    module: tiny.wasm\n" + keys
	for name, text := range map[string]string{"tiny.wasm": string(module.Bytes()), "lab.yaml": lab} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The keys of a module have errors with line and column, and explain shows them.
func TestKeysOfModules(t *testing.T) {
	t.Chdir(t.TempDir())
	good := sandboxtest.Answer(50_000)
	for _, c := range []struct{ keys, want string }{
		{"    params: {gain: 2}\n", `lab.yaml:9:20: transport.wasm.params.gain: "2" is out of range; expected 0.1 to 1`},
		{"    params: {gian: 0.3}\n", "lab.yaml:9:14: transport.wasm.params.gian: unknown key"},
		{"    params: 7\n", "lab.yaml:9:13: transport.wasm.params"},
		{"    paths: 4\n", "lab.yaml:9:12: transport.wasm.paths: packets of several paths overtake"},
		{"    spread: by-marks\n", "lab.yaml:9:13: transport.wasm.spread: there is one path"},
		{"    cnp_interval: 1us\n", "lab.yaml:9:19: transport.wasm.cnp_interval: the module tiny handles no"},
		{"    threshold: 5\n", "lab.yaml:9:16: transport.wasm.threshold: it is a key of selective repeat"},
		{"    module: tiny.wasm\n", "lab.yaml:9:5"},
	} {
		writeModule(t, good, c.keys)
		if code, _, told := weft(t, orchestrated{}, "validate", "lab.yaml"); code != exitUsage || !strings.Contains(told, c.want) {
			t.Errorf("%q: exit code %d, %q; want %q", c.keys, code, told, c.want)
		}
	}
	for keys, want := range map[string]bool{
		"": true, "    recovery: selective-repeat\n": false, "    telemetry: true\n    recovery: selective-repeat\n": false,
	} {
		writeModule(t, good, keys)
		code, _, told := weft(t, orchestrated{}, "validate", "lab.yaml")
		if strings.Contains(told, "queues.pfc: wasm is outside its conditions: it recovers by go-back-N") != want || code != 0 {
			t.Errorf("%q: exit code %d, %q", keys, code, told)
		}
	}
	if err := os.WriteFile("tiny.c", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]bool{0: false, -time.Hour: false, time.Minute: true} {
		at := time.Now().Add(after)
		if err := os.Chtimes("tiny.c", at, at); err != nil {
			t.Fatal(err)
		}
		const older = "transport.wasm.module: tiny.c is newer than tiny.wasm; build it again"
		code, _, told := weft(t, orchestrated{}, "validate", "lab.yaml")
		if code != exitOK || strings.Contains(told, older) != want {
			t.Errorf("source changed %v later: exit code %d, %q", after, code, told)
		}
	}
	for _, file := range []string{"absent.wasm", "/etc/passwd", "../tiny.wasm", "lab.yaml"} {
		code, _, told := weft(t, orchestrated{}, "validate", "lab.yaml", "--set", "transport.wasm.module="+file)
		if code != exitUsage || !strings.Contains(told, "transport.wasm.module: ") {
			t.Errorf("%s: exit code %d, %q", file, code, told)
		}
	}
	writeModule(t, good, "    params: {gain: 30%}\n    recovery: selective-repeat\n    paths: 4\n    window: 2bdp\n")
	code, out, told := weft(t, orchestrated{}, "explain", "lab.yaml")
	for _, want := range []string{"transport.wasm.params.gain", "0.3", "transport.wasm.paths", "transport.first_window"} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("exit code %d; explain does not show %s:\n%s%s", code, want, out, told)
		}
	}
	if code, _, told := weft(t, orchestrated{}, "run", "lab.yaml", "--engine", "sim", "--quiet", "--out", "runs"); code != exitOK {
		t.Errorf("exit code %d, %s", code, told)
	}
}

// A module that fails during a simulated run ends it by name, and nothing else.
func TestModuleFailsDuringARun(t *testing.T) {
	t.Chdir(t.TempDir())
	for want, event := range map[string][]byte{
		"it ran too long":                  sandboxtest.Forever(),
		"unreachable":                      sandboxtest.Trap(),
		"its window is -1 bytes":           sandboxtest.Answer(-1),
		"it needs too much memory: it has": sandboxtest.Grow(),
	} {
		writeModule(t, sandboxtest.Code(sandboxtest.Answer(50_000), sandboxtest.After(100, event)), "")
		code, out, told := weft(t, orchestrated{}, "run", "lab.yaml", "--engine", "sim", "--out", "runs")
		_, first, _ := strings.Cut(out, "  error ")
		first, rest, _ := strings.Cut(strings.TrimSpace(first), "\n")
		if code != exitFailed || !strings.HasPrefix(first, "module tiny: after an acknowledgement (Ack): "+want) ||
			!strings.Contains(first, "us on host h") || strings.Contains(rest, "module tiny: ") {
			t.Errorf("exit code %d, %s%s", code, out, told)
		}
		for line := range strings.Lines(out) {
			// a packet that waits for its retransmission would add a millisecond
			if text, ok := strings.CutPrefix(line, "  lab time "); ok && !strings.Contains(text, "us, in ") {
				t.Errorf("%s: the run went on: %s", want, line)
			}
		}
	}
}
