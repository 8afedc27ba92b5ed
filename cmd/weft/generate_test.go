package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is generated is a lab that runs as it is, whatever the kind.
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
		if err := os.WriteFile(file, []byte(stdout), 0o644); err != nil {
			t.Fatal(err)
		}
		if code, out, stderr := weft(t, &fake{}, "validate", file); code != 0 || !strings.Contains(out, ": ok, 1 run") {
			t.Errorf("generate %v: what it prints is not a lab: %s\n%s", args, stderr, stdout)
		}
	}
	for args, want := range map[string]string{
		"torus": "is no topology", "": "expected a topology", "fat-tree --k 5": "topology.k: 5 is odd", "star --hosts 1": "topology.hosts: ",
		"star --rate 100": "has no unit", "star --name ../x": "name: ", "fat-tree --hosts 4": "unknown flag",
	} {
		if code, stdout, stderr := weft(t, &fake{}, append([]string{"generate"}, strings.Fields(args)...)...); code != exitUsage || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("generate %s: code %d, %q, want %q", args, code, stderr, want)
		}
	}
}
