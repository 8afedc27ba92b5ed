package starter

import (
	"fmt"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"weft/examples"
	"weft/sdk"
	"weft/transport"
)

// controllerName matches names of new congestion controls.
var controllerName = regexp.MustCompile(`^[a-z][a-z0-9]{0,31}$`)

// CheckControllerName returns why a new congestion control cannot have a name, or nil.
func CheckControllerName(name string) error {
	switch {
	case !controllerName.MatchString(name):
		return fmt.Errorf("%q is not a name; expected up to 32 letters a-z and digits, the first a letter", name)
	case token.IsKeyword(name) || name == "weft":
		return fmt.Errorf("%q is a word that Go or Weft needs; expected another name", name)
	case slices.Contains(transport.Kinds(), name):
		return fmt.Errorf("%q is the name of a transport of Weft, so that results would not tell them apart; "+
			"expected another, such as my%[1]s", name)
	}
	return nil
}

// Controller returns the files of a congestion control to start from, by their paths in its folder:
// the program of package examples under a name, its test, a lab that compares it, and a copy of
// package sdk/cc where go build finds it without a network. name is an identifier of Go.
func Controller(name string) (map[string]string, error) {
	files := map[string]string{
		"go.mod":             "module " + name + "\n\ngo 1.26\n\nrequire weft v1.0.0 // weft/sdk/cc, in vendor\n",
		"vendor/modules.txt": "# weft v1.0.0\n## explicit; go 1.26\nweft/sdk/cc\n",
	}
	own := map[string]string{"main.go": name + ".go", "main_test.go": name + "_test.go", "lab.yaml": "lab.yaml"}
	for from, to := range own {
		text, err := examples.AIMD.ReadFile("cc/aimd/" + from)
		if err != nil {
			return nil, err
		}
		files[to] = strings.ReplaceAll(string(text), "aimd", name)
	}
	err := fs.WalkDir(sdk.Files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := sdk.Files.ReadFile(file)
		files[path.Join("vendor/weft/sdk", file)] = string(text)
		return err
	})
	return files, err
}
