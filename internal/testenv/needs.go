package testenv

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/privilege"
)

// The functions whose names begin with Need skip a test, at once, where this machine or this user
// lacks what it needs, and say what that is. A test whose name begins with TestPriv calls one of
// them, or one of dockertest and umltest; see internal/archtest.

// NeedEmulation skips the test where this user cannot run emulated labs: neither as root, nor as an
// ordinary user in a user namespace. It skips it with -short, too, since emulation takes seconds.
func NeedEmulation(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("emulation takes seconds")
	}
	if err := privilege.CheckNamespaces(); err != nil {
		t.Skipf("this machine cannot emulate: %v", err)
	}
}

// NeedNamespaces skips the test unless this process may create namespaces and configure their
// networks itself: it is root, of the machine or of a user namespace.
func NeedNamespaces(t testing.TB) {
	t.Helper()
	if privilege.NeedsUserNS() {
		t.Skip("needs root, who may create network namespaces: run it as root, or under unshare --user --map-root-user")
	}
	if err := privilege.CheckNamespaces(); err != nil {
		t.Skip(err)
	}
}

// NeedRoot skips the test unless this process is root of the machine, with all its rights: it may
// become any user and give files away.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if initial, _ := privilege.InitialUserNS(); privilege.NeedsUserNS() || !initial {
		t.Skip("needs root of the machine: this one is root of a container or user namespace")
	}
}

// NeedOrdinaryUser skips the test unless this process may create no namespaces as it is.
func NeedOrdinaryUser(t testing.TB) {
	t.Helper()
	if !privilege.NeedsUserNS() {
		t.Skip("needs an ordinary user")
	}
}

// NeedRealTime skips the test where threads of this process may not have real-time scheduling.
func NeedRealTime(t testing.TB) {
	t.Helper()
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_RTPRIO, &limit)
	if !privilege.Has(unix.CAP_SYS_NICE) && (err != nil || limit.Cur == 0) {
		t.Skip("needs real-time scheduling: run it as root")
	}
}

// NeedProgram skips the test where one of the programs is not installed, and returns their paths.
// Administrators' folders are searched, too.
func NeedProgram(t testing.TB, names ...string) (paths []string) {
	t.Helper()
	for _, name := range names {
		path, err := exec.LookPath(name)
		for _, dir := range []string{"/usr/sbin/", "/sbin/"} {
			if err != nil {
				path, err = exec.LookPath(dir + name)
			}
		}
		if err != nil {
			t.Skipf("%s is not installed: make tools installs what the tests use", name)
		}
		paths = append(paths, path)
	}
	return paths
}
