package control

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// A program sees none of what was open before, by the one call and by the loop for kernels without
// it.
func TestDescriptorsAreKept(t *testing.T) {
	for name, keep := range map[string]func() error{"close_range": KeepDescriptors,
		"each": func() error { return keepEach(3) }} {
		dir, err := unix.Open(t.TempDir(), unix.O_RDONLY|unix.O_DIRECTORY, 0) // not closed on exec, as a shell's
		if err != nil {
			t.Fatal(err)
		}
		high, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD, 200)
		if err != nil {
			t.Fatal(err)
		}
		if err := keep(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cmd := exec.Command("/bin/sh", "-c", "test ! -e /proc/self/fd/200 && test ! -e /proc/self/fd/$0 && echo -n "+
			"yes >&3", os.DevNull)
		cmd.Args[3] = strconv.Itoa(dir)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.ExtraFiles = []*os.File{w} // what is given by name arrives
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: a descriptor was inherited: %v %s", name, err, out)
		}
		w.Close()
		said := make([]byte, 8)
		if n, _ := r.Read(said); string(said[:n]) != "yes" {
			t.Errorf("%s: the program said %q", name, said[:n])
		}
		r.Close()
		unix.Close(dir)
		unix.Close(high)
	}
}
