package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/sandbox/sandboxtest"
)

// writeModule writes a module into the workspace and returns a lab that uses it.
func (d *workspace) writeModule(event []byte) (lab string) {
	d.t.Helper()
	lab = d.writeLab("tiny.yaml", "weft: 1\nname: tiny\ntopology: {kind: star, hosts: 3}\n"+
		"workload: [{collective: incast, ranks: 2, size: 256KB}]\n"+
		"transport: {kind: wasm, wasm: {module: tiny.wasm, ecn: true}}\n")
	if err := os.WriteFile(filepath.Join(d.dir, "tiny.wasm"), sandboxtest.Module{Event: event}.Bytes(), 0o644); err != nil {
		d.t.Fatal(err)
	}
	return lab
}

// A module runs in both engines. One that fails during a run ends it with its name and the event,
// soon, and leaves nothing behind.
func TestModuleInBothEngines(t *testing.T) {
	window := sandboxtest.Answer(50_000)
	failing := map[string][]byte{
		"":                         window,
		"it ran too long":          sandboxtest.After(100, sandboxtest.Forever()),
		"unreachable":              sandboxtest.After(100, sandboxtest.Trap()),
		"its window is -1 bytes":   sandboxtest.After(100, sandboxtest.Answer(-1)),
		"its window is NaN bytes":  sandboxtest.After(100, sandboxtest.StoreInt(sandboxtest.Window, sandboxtest.Int(-1))),
		"it needs too much memory": sandboxtest.After(100, sandboxtest.Grow()),
	}
	for want, event := range failing {
		d := newWorkspace(t)
		before := takeTraces(t)
		lab := d.writeModule(sandboxtest.Code(window, event))
		for _, engine := range []string{"sim", "emu"} {
			args := []string{"run", lab, "--engine", engine}
			if engine == "emu" {
				args = append(args, "--dilation", "2000")
			}
			r := d.run(args...)
			switch {
			case want == "" && r.code != 0:
				t.Errorf("%s: exit code %d\n%s%s", engine, r.code, r.stdout, r.stderr)
			case want != "" && (r.code != 1 || !strings.Contains(r.stdout+r.stderr, "  error     module tiny: after") ||
				!strings.Contains(r.stdout+r.stderr, want)):
				t.Errorf("%s: exit code %d; want %q\n%s%s", engine, r.code, want, r.stdout, r.stderr)
			}
		}
		before.nothingLeft(t, nil, wait)
	}
}

// A module runs in containers, too: its bytes and its compiled code come over the control channel.
// One that fails ends the run by name.
func TestPrivModuleInDocker(t *testing.T) {
	needDocker(t)
	window := sandboxtest.Answer(50_000)
	for want, event := range map[string][]byte{
		"":                         window,
		"module tiny: after a":     sandboxtest.After(100, sandboxtest.Trap()),
		"its window is -1 bytes; ": sandboxtest.After(100, sandboxtest.Answer(-1)),
	} {
		d := newWorkspace(t)
		r := d.run("run", d.writeModule(sandboxtest.Code(window, event)), "--engine", "emu", "--runtime", "docker",
			"--dilation", "2000")
		if failed := want != ""; (r.code != 0) != failed || failed && !strings.Contains(r.stdout+r.stderr, want) {
			t.Errorf("exit code %d; want %q\n%s%s", r.code, want, r.stdout, r.stderr)
		}
		checkNoContainers(t, "tiny")
	}
}
