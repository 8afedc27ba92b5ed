package main

import (
	"fmt"
	"strings"
	"testing"
)

// Labs of two files with one name are no repetitions of each other, and the labs of two directories
// are matched by name also where each has one.
func TestLabsAreMatchedByName(t *testing.T) {
	t.Chdir(t.TempDir())
	lab := func(file, name, delay string) {
		write(t, file, fmt.Sprintf("weft: 1\nname: %s\ntopology: {kind: star, hosts: 4, link: {delay: %s}}\n"+
			"workload: [{collective: all-reduce, size: 64KB}]\n", name, delay))
	}
	run := func(out string, files ...string) string {
		t.Helper()
		code, _, words := weft(t, orchestrated{}, append([]string{"run", "--engine", "sim", "--out", out}, files...)...)
		if code != exitOK {
			t.Fatal(code, words)
		}
		return words
	}
	gate := func(want int, says, base, changed string) {
		t.Helper()
		if got := results(t, want, "compare", base, changed, "--fail-if", "worse", "--tolerance", "2%"); !strings.Contains(got, says) {
			t.Errorf("%s, %s: %s", base, changed, got)
		}
	}
	lab("a.yaml", "job", "1us")
	lab("b.yaml", "job", "1us")
	if words := run("base", "a.yaml", "b.yaml"); !strings.Contains(words, "a.yaml and b.yaml are labs with one name, job") {
		t.Errorf("no warning: %s", words)
	}
	lab("a.yaml", "job", "1300ns")
	lab("b.yaml", "job", "700ns")
	run("new", "a.yaml", "b.yaml")
	gate(exitFailed, "are runs of one point of job, and differ in topology.link.delay (1.3us, 700ns)", "base", "new")

	lab("train.yaml", "train", "1us")
	lab("other.yaml", "other", "1us")
	run("one", "train.yaml")
	run("two", "other.yaml")
	gate(exitMissed, "NEW lacks train: not run", "one", "two")
	gate(exitOK, "none of", "one/train", "two/other") // the user named both
	run("three", "train.yaml")
	gate(exitOK, "none of", "one", "three")
}
