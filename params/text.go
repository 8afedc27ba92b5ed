package params

import (
	"fmt"
	"regexp"
	"strings"

	"weft/internal/clip"
)

// Regular expressions of names. NamePattern is the name of a lab, which becomes a folder, or of a
// node, which becomes a host name (RFC 1123, section 2.1: at most 63 characters). LinkPattern is
// the name of a link: its two ends, and a number if several links join them.
const (
	NamePattern = `[a-z0-9][a-z0-9-]{0,62}`
	LinkPattern = `[a-z0-9][a-z0-9-]*-[a-z0-9][a-z0-9-]*(#[0-9]+)?`
)

// NameText and LinkText match a whole text that is the name of a node or lab, or of a link.
var (
	NameText = regexp.MustCompile("^" + NamePattern + "$")
	LinkText = regexp.MustCompile("^" + LinkPattern + "$")
)

// Name is the name of a lab or of a node.
func Name(to *string) Of[string] {
	return Matching(to, NameText, "pc4-incast", "a name of 1 to 63 letters a-z, digits and -",
		"%q is not a name; expected 1 to 63 letters a-z, digits and -, the first not -")
}

// LinkName is the name of a link.
func LinkName(to *string) Of[string] {
	return Matching(to, LinkText, "leaf0-spine3", "the name of a link such as leaf0-spine3",
		"%q is not the name of a link; expected its two ends such as leaf0-spine3")
}

// Matching is a text that matches form, which is anchored at both ends. wrong is the format of the
// error about any other text, with one %q.
func Matching(to *string, form *regexp.Regexp, example, expected, wrong string) Of[string] {
	return Custom(to, func(text string) (string, error) {
		if !form.MatchString(text) {
			return "", fmt.Errorf(wrong, clip.Text(text))
		}
		return text, nil
	}, same, expected, func() Form {
		return Form{Patterns: []string{strings.Trim(form.String(), "^$")}, Example: example}
	})
}
