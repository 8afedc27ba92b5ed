package umltest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { Main(m) }

func TestUMLIsAKernelOfItsOwn(t *testing.T) {
	if Outside(t) {
		return
	}
	cpu, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || !strings.Contains(string(cpu), "User Mode Linux") || os.Geteuid() != 0 {
		t.Errorf("user %d on %s, %v", os.Geteuid(), cpu, err)
	}
}

func TestUMLSeesThisFolder(t *testing.T) {
	if Outside(t) {
		return
	}
	if _, err := os.Stat("umltest.go"); err != nil {
		t.Error(err)
	}
	file := t.TempDir() + "/x"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Error(err)
	}
	var s unix.Statfs_t
	if err := unix.Statfs(file, &s); err != nil || s.Type != unix.TMPFS_MAGIC {
		t.Errorf("%s is not in memory: type %x, %v", file, s.Type, err)
	}
}

func TestUMLSkips(t *testing.T) {
	if Outside(t) {
		return
	}
	t.Skip("as it should")
}

// Tests of the machine's own kernel that a pattern chooses too are not run under User Mode Linux.
func TestOthersStayOutside(t *testing.T) {
	skipped := regexp.MustCompile(others)
	for name, want := range map[string]bool{
		"TestUMLSkips": false, "TestUML": false,
		"Test": true, "TestU": true, "TestUM": true, "TestUMSkips": true, "TestOthersStayOutside": true, "ExampleUML": true,
	} {
		if skipped.MatchString(name) != want {
			t.Errorf("%s: skipped %v, want %v", name, !want, want)
		}
	}
	if Inside() {
		t.Error("it is run there")
	}
}
