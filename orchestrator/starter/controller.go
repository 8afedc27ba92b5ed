package starter

import (
	"io/fs"
	"path"
	"strings"

	"weft/examples"
	"weft/sdk"
)

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
