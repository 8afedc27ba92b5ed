package run

import (
	"os"
	"path/filepath"
	"testing"

	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/results/record"
	"weft/results/store"
)

// An earlier emulation is the same run only if the programs of its hosts, and the files that they
// read, had the content that they have now.
func TestSameRunKnowsProgramFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mine := func() string { return write("mine", "one") }
	t.Setenv("PATH", dir)
	read := func(text string) []lab.ProgramFile { return []lab.ProgramFile{{Name: "in/x.sh", Text: []byte(text)}} }
	with := func(p lab.Program) func() *lab.Lab {
		return func() *lab.Lab { return &lab.Lab{Programs: []lab.Program{p}} }
	}
	node := func(n topology.CustomNode) func() *lab.Lab {
		return func() *lab.Lab {
			return &lab.Lab{Topology: topology.Spec{Shape: &topology.Custom{Nodes: []topology.CustomNode{n}}}}
		}
	}
	for _, c := range []struct {
		name    string
		before  func() *lab.Lab
		between func()
		after   func() *lab.Lab // nil: as before
		engine  string
		same    bool
	}{
		{"the same file", with(lab.Program{Args: []string{"/lab/x.sh"}, Files: read("v=1")}), nil, nil, "emu", true},
		{"another file", with(lab.Program{Args: []string{"/lab/x.sh"}, Files: read("v=1")}), nil,
			with(lab.Program{Args: []string{"/lab/x.sh"}, Files: read("v=2")}), "emu", false},
		{"the same program", with(lab.Program{Args: []string{mine()}}), nil, nil, "emu", true},
		{"another program", with(lab.Program{Args: []string{mine()}}), func() { write("mine", "two") }, nil, "emu", false},
		{"a program that is gone", with(lab.Program{Args: []string{mine()}}), func() { os.Remove(mine()) }, nil, "emu", false},
		{"a program of another machine", with(lab.Program{Args: []string{dir + "/none"}}), nil, nil, "emu", false},
		{"a name in PATH", with(lab.Program{Args: []string{"mine"}}), nil, nil, "emu", true},
		{"another program of the name", with(lab.Program{Args: []string{"mine"}}), func() { write("mine", "two") }, nil, "emu", false},
		{"a name of the nodes' system", with(lab.Program{Args: []string{"not-here"}}), nil, nil, "emu", true},
		{"another script", with(lab.Program{Args: []string{"mine", "-u", write("a.py", "1")}}), func() { write("a.py", "2") }, nil,
			"emu", false},
		{"a program of an image", with(lab.Program{Args: []string{mine()}, Image: "x"}), func() { write("mine", "two") }, nil,
			"emu", true},
		{"the program of a node", node(topology.CustomNode{Run: []string{mine()}}), nil, nil, "emu", true},
		{"another program of a node", node(topology.CustomNode{Run: []string{mine()}}), func() { write("mine", "two") }, nil,
			"emu", false},
		{"a simulation runs no program", node(topology.CustomNode{Run: []string{mine()}}), func() { write("mine", "two") }, nil,
			"sim", true},
	} {
		mine()
		before := c.before()
		m := &record.Manifest{Status: record.OK, Program: store.Program(), Engine: c.engine}
		if c.engine == "emu" {
			m.ProgramFiles = programFiles(before)
		}
		if c.between != nil {
			c.between()
		}
		after := before
		if c.after != nil {
			after = c.after()
		}
		if got := sameRun(m, after, "auto"); got != c.same {
			t.Errorf("%s: the same run: %t; files %v, then %v", c.name, got, m.ProgramFiles, programFiles(after))
		}
	}
	if files := programFiles(with(lab.Program{Index: 2, Args: []string{"/lab/x.sh"}, Files: read("v=1")})()); len(files) != 1 ||
		files[0].Path != "workload.2.files.0" || files[0].File != "in/x.sh" || len(files[0].SHA256) != 64 {
		t.Errorf("%+v", files)
	}
}
