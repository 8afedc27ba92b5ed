package params

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"weft/internal/clip"
)

// maxFile is the maximum length of the name of a file in bytes.
const maxFile = 255

// File is the name of a file: a path relative to the lab file that stays in its folder. example is
// a name for messages.
func File(to *string, example string) Of[string] {
	return named(to, example, func(name string) bool { return LocalName(name) && !strings.HasSuffix(name, "/") })
}

// FileOrFolder is the name of a file or of a folder. That of a folder may end in a slash.
func FileOrFolder(to *string, example string) Of[string] { return named(to, example, LocalName) }

// named is a name that valid accepts.
func named(to *string, example string, valid func(name string) bool) Of[string] {
	expected := "a file below the lab file's folder, such as " + example
	return Custom(to, func(name string) (string, error) {
		name = strings.TrimPrefix(name, "./")
		if !valid(name) {
			return "", fmt.Errorf("%q; expected %s%s", clip.Text(name), expected, Outside(name))
		}
		return name, nil
	}, same, expected, func() Form { return Form{} })
}

// Outside returns what to do about the name of a file that is not below the lab file's folder, or
// nothing if it is no such name.
func Outside(name string) string {
	if filepath.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../") {
		return ": copy it there, or move the lab file to a folder above both"
	}
	return ""
}

// LocalName reports whether name is a plain path below a folder. It may end in a slash.
func LocalName(name string) bool {
	return len(name) <= maxFile && filepath.IsLocal(name) && !strings.Contains(name, `\`) &&
		!strings.ContainsFunc(name, unprintable) &&
		filepath.ToSlash(filepath.Clean(name)) == strings.TrimSuffix(name, "/")
}

func unprintable(r rune) bool { return !strconv.IsPrint(r) || r == '\uFFFD' }
