// Package catalogue lists the labs in a folder, such as those inside the program, and finds one by
// what people type: its path, with or without .yaml, or the name in the file. Input: a file system.
// Output: entries and paths. It is pure.
package catalogue

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"weft/internal/nearest"
	"weft/orchestrator/lab"
)

// Entry is a lab of the catalogue.
type Entry struct {
	Lab   string `json:"lab"`   // path without .yaml: pc4/incast
	Name  string `json:"name"`  // in the file: pc4-incast
	About string `json:"about"` // one line
}

// suffix is the extension of lab files.
const suffix = ".yaml"

// List returns the labs of a folder, sorted by path. It skips files that it cannot read.
func List(files fs.FS) []Entry {
	var out []Entry
	_ = fs.WalkDir(files, ".", func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(at) != suffix {
			return nil
		}
		if text, err := fs.ReadFile(files, at); err == nil {
			name, about := lab.Head(text)
			out = append(out, Entry{strings.TrimSuffix(at, suffix), name, strings.TrimSpace(about)})
		}
		return nil
	})
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Lab, b.Lab) })
	return out
}

// Find returns the path of a lab's file. name is labs/pc4/incast.yaml, pc4/incast or the lab's name
// pc4-incast.
func Find(files fs.FS, name string) (at string, ok bool) {
	plain := strings.TrimSuffix(strings.TrimPrefix(name, "labs/"), suffix)
	if !fs.ValidPath(plain) {
		return "", false
	}
	if _, err := fs.Stat(files, plain+suffix); err == nil {
		return plain + suffix, true
	}
	for _, e := range List(files) {
		if e.Name == name {
			return e.Lab + suffix, true
		}
	}
	return "", false
}

// maxNear is the largest number of suggestions.
const maxNear = 3

// Near returns at most three labs similar to an unknown name: first those whose path or name
// differs in up to a fifth of the letters, then those whose last path element differs in up to a
// third, then those with the word in their path.
func Near(files fs.FS, name string) []string {
	word := strings.ToLower(strings.TrimSuffix(path.Base(name), path.Ext(name)))
	whole := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(name, "labs/"), suffix))
	if name == "" || len(whole) > 64 {
		return nil
	}
	type match struct {
		lab string
		far int
	}
	var all []match
	for _, e := range List(files) {
		far := min(nearest.Edits(whole, e.Lab), nearest.Edits(whole, e.Name))
		base := nearest.Edits(word, path.Base(e.Lab))
		switch {
		case far <= max(1, len(whole)/5):
		case base <= max(1, len(word)/3):
			far = 100 + base
		case len(word) > 2 && strings.Contains(e.Lab, word):
			far = 1000 + len(e.Lab) // after all similar ones, shortest first
		default:
			continue
		}
		all = append(all, match{e.Lab, far})
	}
	slices.SortStableFunc(all, func(a, b match) int { return a.far - b.far })
	var out []string
	for _, m := range all[:min(len(all), maxNear)] {
		out = append(out, m.lab)
	}
	return out
}
