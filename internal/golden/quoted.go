package golden

import (
	"os"
	"strings"
)

// Quoted checks that a page of documentation contains, as Go blocks, every part of a source file
// verbatim. A part is between the lines "// begin: name" and "// end".
func Quoted(t T, page, code string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatalf("%v", err)
		return
	}
	source, err := os.ReadFile(code)
	if err != nil {
		t.Fatalf("%v", err)
		return
	}
	parts := 0
	for part := range strings.SplitSeq(string(source), "// begin: ") {
		name, rest, ok := strings.Cut(part, "\n")
		body, _, ended := strings.Cut(rest, "\n// end\n")
		if !ok || !ended {
			continue
		}
		parts++
		if block := "```go\n" + strings.TrimSpace(body) + "\n```"; !strings.Contains(string(text), block) {
			t.Errorf("%s does not have the code of %q as it is in %s", page, name, code)
		}
	}
	if parts == 0 {
		t.Errorf("%s has no part for %s", code, page)
	}
}
