package graph

import "fmt"

// Notes are what a file says and a graph or a network does not need, told once for each kind.
type Notes struct{ kinds []noteKind }

type noteKind struct {
	what, first string
	count       int
}

// maxNotes bounds the kinds: a file may have any number of attributes.
const maxNotes = 20

// Add notes that something of a kind, such as "attribute color of links", stays behind, at a line
// of a file.
func (n *Notes) Add(file string, line int, what string) {
	n.AddAt(what, func() string { return fmt.Sprintf("%s:%d", file, line) })
}

// AddAt is Add for any place, which is called for the first of a kind.
func (n *Notes) AddAt(what string, place func() string) {
	for i := range n.kinds {
		if n.kinds[i].what == what || i == maxNotes {
			n.kinds[i].count++
			return
		}
	}
	if len(n.kinds) == maxNotes {
		what = "more than that"
	}
	n.kinds = append(n.kinds, noteKind{what, place(), 1})
}

// Texts returns a sentence for each kind, in the order of the file.
func (n *Notes) Texts() (all []string) {
	for _, k := range n.kinds {
		text := fmt.Sprintf("%s: %s is not used", k.first, k.what)
		if k.count > 1 {
			text += fmt.Sprintf(" (%d times, this is the first)", k.count)
		}
		all = append(all, text)
	}
	return all
}
