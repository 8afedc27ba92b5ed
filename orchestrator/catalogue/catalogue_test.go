package catalogue

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"weft/labs"
)

func files() fstest.MapFS {
	lab := func(name, about string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("weft: 1\nname: " + name + "\nabout: " + about + "\n")}
	}
	return fstest.MapFS{
		"quickstart.yaml": lab("quickstart", "first steps"), "pc4/incast.yaml": lab("pc4-incast", "N to 1"),
		"ccm/incast.yaml":       lab("ccm-incast", "with CCM"),
		"smoke/all-reduce.yaml": lab("ring", "a ring"), "pc4/paper.yml": {Data: []byte("claims: []")},
		"bad.yaml": {Data: []byte("{")},
	}
}

func TestListHasNamesAndWords(t *testing.T) {
	all := List(files())
	var paths []string
	for _, e := range all {
		paths = append(paths, e.Lab)
	}
	if got := strings.Join(paths, " "); got != "bad ccm/incast pc4/incast quickstart smoke/all-reduce" {
		t.Errorf("labs %s", got)
	}
	if all[2] != (Entry{"pc4/incast", "pc4-incast", "N to 1"}) {
		t.Errorf("%+v", all[2])
	}
}

func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"labs/pc4/incast.yaml": "pc4/incast.yaml", "pc4/incast": "pc4/incast.yaml", "pc4-incast": "pc4/incast.yaml",
		"quickstart": "quickstart.yaml",
		"ring":       "smoke/all-reduce.yaml", "incast": "", "../x": "", "/etc/passwd": "", "": "", "pc4": "",
		"pc4/paper.yml": "",
	} {
		if got, ok := Find(files(), name); got != want || ok != (want != "") {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestNear(t *testing.T) {
	for name, want := range map[string]string{
		"incast": "ccm/incast pc4/incast", "incast.yaml": "ccm/incast pc4/incast", "pc4-incats": "pc4/incast",
		"quikstart": "quickstart",
		"reduce":    "smoke/all-reduce", "elephant": "", "": "", "labs/pc4/icast.yaml": "pc4/incast ccm/incast",
	} {
		if got := strings.Join(Near(files(), name), " "); got != want {
			t.Errorf("near %q are %q, want %q", name, got, want)
		}
	}
}

// Every lab that comes with Weft has a unique name and a description of one line.
func TestLabsThatComeWithWeftAreDescribed(t *testing.T) {
	var names []string
	for _, e := range List(labs.Files) {
		if e.Name == "" || e.About == "" || strings.Contains(e.About, "\n") || slices.Contains(names, e.Name) {
			t.Errorf("%s: name %q, about %q", e.Lab, e.Name, e.About)
		}
		names = append(names, e.Name)
	}
	if len(names) < 100 {
		t.Errorf("%d labs", len(names))
	}
}
