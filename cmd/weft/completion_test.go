package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/orchestrator/deploy"
	"weft/results/store"
)

// completed returns the words that the shell is offered for the last word of a command line,
// without descriptions, and the directive.
func completed(t *testing.T, d *deployed, args ...string) (offers []string, directive string) {
	t.Helper()
	var out, said strings.Builder
	a := &app{stdout: &out, stderr: &said, engine: &fake{}, deployed: d}
	if code := a.execute(t.Context(), append([]string{"__complete"}, args...)); code != 0 {
		t.Fatalf("%v: code %d, %s", args, code, said.String())
	}
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSuffix(line, "\n")
		if d, ok := strings.CutPrefix(line, ":"); ok {
			return offers, d
		}
		word, _, _ := strings.Cut(line, "\t")
		offers = append(offers, word)
	}
	t.Fatalf("%v: no directive in %q", args, out.String())
	return nil, ""
}

func TestCompletion(t *testing.T) {
	root := t.TempDir()
	t.Setenv(store.RootVar, root)
	for _, dir := range []string{"incast/20260101T000000-1", "incast/20260102T000000-1", "incast/sweep-20260102T000000-sim", "star/20260101T000000-1"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i, point := range []string{`{"transport.kind":"roce","seed":1}`, `{"transport.kind":"pc4","seed":1}`} {
		dir := filepath.Join(root, "swept", fmt.Sprintf("20260101T000000-%d", i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, store.ManifestFile), `{"format":1,"status":"ok","lab":"swept","point":`+point+`}`)
	}
	labs := []string{"quickstart", "star"}
	deployed := &deployed{
		labs: func() ([]string, error) { return labs, nil },
		state: func(lab string) (*deploy.State, error) {
			if lab == "gone" {
				return nil, errors.New("not deployed")
			}
			return &deploy.State{
				Nodes: []deploy.NodeState{
					{Name: "h0", MAC: "02:00:00:00:00:01", State: "running"}, {Name: "h1", MAC: "02:00:00:00:00:02", State: "dead"},
					{Name: "switch0", State: "modelled"},
				},
				Links: []deploy.LinkState{{Name: "h0-switch0", A: "h0", B: "switch0"}, {Name: "h1-switch0", A: "h1", B: "switch0"}},
			}, nil
		},
	}
	check := func(line, want string) {
		t.Helper()
		got, _ := completed(t, deployed, strings.Split(line, " ")...)
		joined := strings.Join(got, " ")
		if some, isSome := strings.CutSuffix(want, "..."); isSome {
			for _, w := range strings.Fields(some) {
				if !strings.Contains(" "+joined+" ", w) {
					t.Errorf("weft %s: offers %s; want %s among them", line, joined, w)
				}
			}
		} else if want != joined {
			t.Errorf("weft %s: offers %q; want %q", line, joined, want)
		}
	}
	for _, c := range []struct {
		line, want string // all offers, or some followed by "..."
	}{
		{"run --engine ", "auto sim emu both"},
		{"run --engine e", "emu"},
		{"run --runtime ", "auto namespace docker"},
		{"run --datapath ", "auto fabric kernel"},
		{"run --dilation ", "auto"},
		{"run --kernel ", "host uml"},
		{"run --launch m", "mpich"},
		{"exec --clock ", "lab real"},
		{"deploy --kernel ", "host"},
		{"validate --engine b", "both"},
		{"bench --transport s", "swift strack spray"},
		{"bench --transport pc4,ro", "pc4,roce"},
		{"bench --collective all-r", "all-reduce"},
		{"bench --algorithm ri", "ring"},
		{"generate star --transport h", "hpcc"},
		{"graph --format ", "text svg dot mermaid yaml"},
		{"results plot --format ", "svg png"},
		{"results show ", "incast star swept"},
		{"results show incast/2026", "incast/20260102T000000-1 incast/20260101T000000-1"}, // newest first
		{"results compare star incast/s", "incast/sweep-20260102T000000-sim"},
		{"results compare star incast ", ""},
		{"results export star fl", "flows"},
		{"results export star flows ", "csv json"},
		{"results ls i", "incast"},
		{"results compare swept --by ", "seed transport.kind"},
		{"results compare swept --by tr", "transport.kind"},
		{"results compare swept --by transport.kind=", "transport.kind=roce transport.kind=pc4"},
		{"results compare swept --by transport.kind=roce,p", "transport.kind=roce,pc4"},
		{"results compare star incast --by ", ""},
		{"destroy ", "quickstart star"},
		{"inspect q", "quickstart"},
		{"events ", "quickstart star"},
		{"exec h", "h0 h1"},
		{"exec --lab ", "quickstart star"},
		{"exec --lab gone ", ""},
		{"capture h0-", "h0->switch0"},
		{"node quickstart ", "h0 h1"},
		{"node quickstart h0 ", "kill pause resume restart"},
		{"link quickstart ", "h0-switch0 h1-switch0"},
		{"link quickstart h0-switch0 ", "down up set"},
		{"link quickstart h0-switch0 set delay=5us,lo", "delay=5us,loss="},
		{"run --set transport.ki", "transport.kind="},
		{"run --set transport.kind=", "pc4 ..."},
		{"run --set transport.kind=ro", "transport.kind=roce"},
		{"run --set workload.0.coll", "workload.0.collective="},
		{"run --set workload.3.collective=all-r", "workload.3.collective=all-reduce"},
		{"run --set queues.ecn", "queues.ecn= ..."},
		{"run --set clocks.sync=p", "clocks.sync=perfect clocks.sync=ptp"},
		{"run --set weft", ""},
		{"explain --set engine.", "engine.kind= engine.runtime= engine.datapath= engine.dilation= ..."},
	} {
		check(c.line, c.want)
	}
	labs = labs[:1] // the only lab may be left out
	check("node ", "h0 h1 quickstart")
	check("node q", "quickstart")
	check("node h0 ", "kill pause resume restart")
	check("node quickstart h0 k", "kill")
	check("link h0-switch0 set delay=5us,lo", "delay=5us,loss=")
	check("link h0-switch0 down ", "")
	check("inspect ", "quickstart")
	if _, directive := completed(t, deployed, "run", "--set", "topology.k"); directive != "6" {
		t.Errorf("a path is completed by %s, want 6, no files and no space", directive)
	}
}

// Files and labs inside the program complete alike.
func TestLabCompletion(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"quick.yaml", "notes.txt", "mine/own.yml", "labs/pc4/own.yaml", ".git/x.yaml"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, name, "")
	}
	if err := os.Symlink("mine", "linked"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, want, directive string }{
		{"run quick", "quick.yaml quickstart", "4"},
		{"explain ", "labs/ linked/ mine/ quick.yaml quickstart", "6"},
		{"validate mine/", "mine/own.yml", "4"},
		{"validate linked/o", "linked/own.yml", "4"},
		{"validate .g", ".git/", "6"},
		{"run labs/qui", "labs/quickstart.yaml", "4"},
		{"run labs/pc", "labs/pc4/", "6"}, // once, though it is on disk and in the program
		{"bench --lab labs/pc4/incast.", "labs/pc4/incast.yaml", "4"},
		{"run labs/pc4/o", "labs/pc4/own.yaml", "4"},
		{"run ~/la", "yaml yml", "8"},
		{"run nothing", "yaml yml", "8"},
	} {
		got, directive := completed(t, nil, strings.Split(c.line, " ")...)
		if strings.Join(got, " ") != c.want || directive != c.directive {
			t.Errorf("weft %s: offers %q, directive %s; want %q, %s", c.line, got, directive, c.want, c.directive)
		}
	}
}

// Every shell that cobra supports has a script.
func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, stdout, stderr := weft(t, &fake{}, "completion", shell); code != 0 || !strings.Contains(stdout, "__complete") {
			t.Errorf("%s: code %d, %s", shell, code, stderr)
		}
	}
}
