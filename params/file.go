package params

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// maxFile is the maximum length of the name of a file in bytes.
const maxFile = 255

// File is the name of a file: a path relative to the lab file that stays in its folder. example is
// a name for messages.
func File(to *string, example string) Of[string] {
	expected := "a file below the lab file's folder, such as " + example
	return Custom(to, func(name string) (string, error) {
		if len(name) > maxFile || !filepath.IsLocal(name) || strings.Contains(name, `\`) ||
			strings.ContainsFunc(name, unprintable) || filepath.ToSlash(filepath.Clean(name)) != name {
			return "", fmt.Errorf("%q; expected %s", Clip(name), expected)
		}
		return name, nil
	}, same, expected, func() Form { return Form{} })
}

func unprintable(r rune) bool { return !strconv.IsPrint(r) || r == '\uFFFD' }
