package main

import (
	"path/filepath"
	"strings"
	"testing"

	"weft/collectives/schedule"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/topology"
	"weft/transport"
)

// Generated labs of every kind validate.
func TestGeneratedLabsValidate(t *testing.T) {
	for _, args := range [][]string{
		{"fat-tree"}, {"fat-tree", "--k", "8", "--transport", "roce", "--collective", "incast", "--ranks", "4"}, {"leaf-spine", "--oversubscription", "2"},
		{"dumbbell", "--rate", "25Gbps", "--delay", "5us"}, {"star", "--collective", "none", "--name", "by-hand"},
	} {
		code, stdout, stderr := weft(t, &fake{}, append([]string{"generate"}, args...)...)
		if code != 0 || stderr != "" {
			t.Errorf("generate %v: code %d, %s", args, code, stderr)
			continue
		}
		file := filepath.Join(t.TempDir(), "lab.yaml")
		write(t, file, stdout)
		if code, out, stderr := weft(t, &fake{}, "validate", file); code != 0 || !strings.Contains(out, ": ok, ") {
			t.Errorf("generate %v: what it prints is not a lab: %s\n%s", args, stderr, stdout)
		}
	}
	for args, want := range map[string]string{
		"ring": "unknown topology \"ring\"; expected a topology: fat-tree, leaf-spine", "": "expected a topology", "fat-tree --k 5": "topology.k: 5 is odd", "star --hosts 1": "topology.hosts: ",
		"star --transport wasm": "weft new cc NAME", "custom --switches x": "switches: \"x\" is not a whole number", "torus --dimensions 4": "topology.dimensions: ",
		"star --rate 100": "has no unit", "star --name ../x": "name: ", "fat-tree --hosts 4": "unknown flag",
	} {
		if code, stdout, stderr := weft(t, &fake{}, append([]string{"generate"}, strings.Fields(args)...)...); code != exitUsage || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("generate %s: code %d, %q, want %q", args, code, stderr, want)
		}
	}
}

// Labs with every topology and transport, and with every collective on a star, run as generated.
func TestGeneratedLabsRun(t *testing.T) {
	try := func(kind, transport, collective string) {
		t.Run(kind+"-"+transport+"-"+collective, func(t *testing.T) {
			t.Parallel()
			code, text, stderr := weft(t, &fake{}, "generate", kind, "--transport", transport, "--collective", collective, "--size", "16KB")
			if code != 0 || stderr != "" {
				t.Fatalf("generate: code %d, %s", code, stderr)
			}
			labs, err := lab.Parse("generated", []byte(text), lab.Options{})
			if err != nil || len(labs) != 1 || labs[0].Topology.Kind != kind {
				t.Fatalf("not a lab with a %s: %v\n%s", kind, err, text)
			}
			x, err := experiment.Build(labs[0])
			if err != nil {
				t.Fatal(err)
			}
			s, err := orchestrate.Run(t.Context(), x, orchestrate.Options{Engine: "sim", Root: t.TempDir(), Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			if !s.Verified || s.Flows.Count == 0 || s.Transport != transport || s.Collectives[0].Name != collective {
				t.Errorf("%s by %s: verified %v, %d flows", s.Collectives[0].Name, s.Transport, s.Verified, s.Flows.Count)
			}
			if len(s.Warnings) > 0 { // for example about a transport outside its conditions
				t.Errorf("warnings: %s", strings.Join(s.Warnings, "; "))
			}
		})
	}
	for _, k := range topology.Kinds() {
		for _, kind := range lab.Values("transport.kind") {
			if !transport.FactsOf(kind).Module {
				try(k.Name, kind, "all-reduce")
			}
		}
	}
	for _, c := range schedule.Collectives()[1:] {
		try("star", "pc4", c)
	}
}

// Transports that need a lossless network get one, with routes on which PFC cannot deadlock.
func TestGeneratedLabsKeepConditions(t *testing.T) {
	for args, want := range map[string][2]bool{ // pfc, up-down
		"torus --transport hpcc": {true, true}, "torus --transport pc4": {}, "fat-tree --transport roce": {true, false},
	} {
		_, text, _ := weft(t, &fake{}, append([]string{"generate"}, strings.Fields(args)...)...)
		if got := [2]bool{strings.Contains(text, "pfc: on"), strings.Contains(text, "routes: up-down")}; got != want {
			t.Errorf("generate %s: pfc and up-down %v, want %v\n%s", args, got, want, text)
		}
	}
}

// A size with the name of a flag that all kinds have gets a flag with the kind before it.
func TestSizeFlags(t *testing.T) {
	for size, want := range map[string]string{"size": "ring-size", "mtu": "ring-mtu", "rate": "ring-rate", "hosts_per_leaf": "hosts-per-leaf", "k": "k"} {
		if got := sizeFlag("ring", size); got != want {
			t.Errorf("%s: --%s, want --%s", size, got, want)
		}
	}
}

// The help lists every kind with its parameters.
func TestGenerateHelp(t *testing.T) {
	_, stdout, _ := weft(t, &fake{}, "generate", "--help")
	for _, k := range topology.Kinds() {
		_, after, found := strings.Cut(stdout, "\n  "+k.Name+" ")
		for _, p := range k.Parameters() {
			if flags := strings.SplitN(after, "\n", 3); !found || len(flags) < 2 || !strings.Contains(flags[1], sizeFlag(k.Name, p.Name)) {
				t.Errorf("%s of %s is missing", sizeFlag(k.Name, p.Name), k.Name)
			}
		}
	}
}
