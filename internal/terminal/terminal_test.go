package terminal

import (
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// In raw mode nothing is echoed or translated; restore brings both back.
func TestRaw(t *testing.T) {
	controller, user, err := Open()
	if err != nil {
		t.Skip(err) // no /dev/ptmx
	}
	defer controller.Close()
	defer user.Close()
	if !Is(user) || !Is(controller) {
		t.Error("a terminal is not recognized")
	}
	restore, err := Raw(user)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := controller.WriteString("a\x03"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 2)
	if _, err := io.ReadFull(user, got); err != nil || string(got) != "a\x03" {
		t.Errorf("%q, %v", got, err)
	}
	restore()
	if s, err := unix.IoctlGetTermios(int(user.Fd()), unix.TCGETS); err != nil || s.Lflag&unix.ECHO == 0 || s.Lflag&unix.ICANON == 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestSize(t *testing.T) {
	controller, user, err := Open()
	if err != nil {
		t.Skip(err)
	}
	defer controller.Close()
	defer user.Close()
	if err := unix.IoctlSetWinsize(int(controller.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 7, Col: 93}); err != nil {
		t.Fatal(err)
	}
	other, peer, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	defer peer.Close()
	CopySize(other, user)
	if w := Width(peer); w != 93 {
		t.Errorf("width %d, want 93", w)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if Is(null) || Width(null) != 0 {
		t.Errorf("%s is no terminal", os.DevNull)
	}
	CopySize(null, user)
}

// Text goes through the pager of the environment, and to the file if there is none.
func TestPage(t *testing.T) {
	for pager, want := range map[string]string{"tr a-z A-Z": "TEXT\n", "cat": "text\n", "": "text\n", "no-such-pager -x": "text\n"} {
		t.Setenv("PAGER", pager)
		out, err := os.Create(t.TempDir() + "/out")
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		err = Page(out, io.Discard, func(w io.Writer) error {
			_, err := io.WriteString(w, "text\n")
			return err
		})
		if got, readErr := os.ReadFile(out.Name()); err != nil || readErr != nil || string(got) != want {
			t.Errorf("PAGER=%q: %q, %v, %v", pager, got, err, readErr)
		}
	}
}
