package graph

import (
	"fmt"
	"strings"
)

// Notes collects what a graph or a network leaves out of its file, or approximates, once for
// each kind.
type Notes struct{ kinds []noteKind }

type noteKind struct {
	what, first string
	changed     bool // what is a sentence
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
func (n *Notes) AddAt(what string, place func() string) { n.add(what, false, 1, place) }

// Changed notes that something is not as the file says it, count times. what is a sentence.
func (n *Notes) Changed(what string, count int, place func() string) { n.add(what, true, count, place) }

func (n *Notes) add(what string, changed bool, count int, place func() string) {
	for i := range n.kinds {
		if n.kinds[i].what == what || i == maxNotes {
			n.kinds[i].count += count
			return
		}
	}
	if len(n.kinds) == maxNotes {
		what, changed = "more than that", false
	}
	n.kinds = append(n.kinds, noteKind{what, place(), changed, count})
}

// attribute returns the name of the attribute that a kind is about, and what it belongs to.
func (k *noteKind) attribute() (name, of string, ok bool) {
	text, ok := strings.CutPrefix(k.what, "attribute ")
	i := strings.LastIndex(text, " of ")
	if !ok || i < 0 || k.changed {
		return "", "", false
	}
	return text[:i], text[i+len(" of "):], true
}

// Texts returns a sentence for each kind, in the order of the file, and one for all attributes of
// the same things.
func (n *Notes) Texts() (all []string) {
	told := map[string]bool{}
	for i := range n.kinds {
		k := n.kinds[i]
		text := fmt.Sprintf("%s: %s", k.first, k.what)
		name, of, ok := k.attribute()
		if told[of] && ok {
			continue
		}
		names := []string{name}
		if told[of] = ok; ok {
			for j := range n.kinds[i+1:] {
				if other, its, ok := n.kinds[i+1+j].attribute(); ok && its == of {
					names, k.count = append(names, other), k.count+n.kinds[i+1+j].count
				}
			}
		}
		switch {
		case len(names) > 1:
			text = fmt.Sprintf("%s: attributes %s of %s are not used", k.first, strings.Join(names, ", "), of)
		case !k.changed:
			text += " is not used"
		}
		if k.count > 1 {
			text += fmt.Sprintf(" (%d times, this is the first)", k.count)
		}
		all = append(all, text)
	}
	return all
}
