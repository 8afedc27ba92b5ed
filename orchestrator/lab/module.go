package lab

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"weft/internal/clip"
	"weft/transport"
)

// sources are the suffixes of files that modules are built from.
var sources = []string{".go", ".c", ".rs"}

// noteSource notes a module that is older than a source file beside it: it was not built after the
// last change. A second more or less may be the order in which a copy was made.
func (d *decoder) noteSource(t *Transport) {
	m, file := transport.ModuleOf(t.Section)
	if m == nil || d.files == nil {
		return
	}
	entries, err := fs.ReadDir(d.files, path.Dir(file))
	if err != nil {
		return // nothing is known of what is beside it
	}
	changed := func(name string) (at time.Time) {
		for _, e := range entries {
			if info, err := e.Info(); e.Name() == name && err == nil {
				at = info.ModTime()
			}
		}
		return at
	}
	built := changed(path.Base(file))
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || !slices.Contains(sources, path.Ext(name)) || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if !built.IsZero() && changed(name).Sub(built) > time.Second {
			text := fmt.Sprintf("%s is newer than %s; build it again, or the run has the old control",
				clip.Text(name), clip.Text(file))
			d.notes = append(d.notes, note{"transport." + t.Kind + ".module", text})
			return
		}
	}
}
