package labfile

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	library "weft/labs"
	"weft/orchestrator/catalogue"
)

// Complete returns what a name of a lab that begins with prefix may continue as, in order: files
// and folders (which end in /), and labs inside the program by path and name. Folders and files of
// the program's labs look like those on disk, below labs/.
func Complete(prefix string) []string {
	dir := prefix[:strings.LastIndexByte(prefix, '/')+1]
	var names []string
	list := func(files fs.FS, at string) {
		entries, _ := fs.ReadDir(files, at) // a folder that cannot be read has nothing to offer
		for _, e := range entries {
			info, err := fs.Stat(files, path.Join(at, e.Name())) // follows links
			switch {
			case err != nil || e.Name()[0] == '.' && dir == prefix:
			case info.IsDir():
				names = append(names, dir+e.Name()+"/")
			case slices.Contains([]string{".yaml", ".yml"}, path.Ext(e.Name())):
				names = append(names, dir+e.Name())
			}
		}
	}
	list(os.DirFS(cmp.Or(dir, ".")), ".")
	if inside, ok := strings.CutPrefix(dir, "labs/"); ok {
		list(library.Files, path.Clean(inside))
	}
	if dir == "" {
		names = append(names, "labs/")
		top, _ := fs.Glob(library.Files, "*.yaml") // the pattern is valid
		for _, name := range top {
			names = append(names, strings.TrimSuffix(name, ".yaml"))
		}
		if prefix != "" { // all names would be too many
			for _, e := range catalogue.List(library.Files) {
				names = append(names, e.Name)
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
	slices.Sort(names)
	return slices.Compact(names)
}
