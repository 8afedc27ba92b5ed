package boot

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/control"
	"weft/internal/testenv"
	"weft/internal/thread"
)

func TestMAC(t *testing.T) {
	m := MACOf(netip.MustParseAddr("10.1.2.3"))
	text, err := json.Marshal(m)
	if err != nil || string(text) != `"02:00:0a:01:02:03"` {
		t.Errorf("got %s, %v", text, err)
	}
	var back MAC
	if err := json.Unmarshal(text, &back); err != nil || back != m {
		t.Errorf("got %v, %v", back, err)
	}
	for _, bad := range []string{`"02:00"`, `"02:00:5e:10:00:00:00:01"`, `"x"`, `7`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestMountPoint(t *testing.T) {
	for line, want := range map[string]struct {
		point string
		flags uintptr
		ok    bool
	}{
		"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw":         {"/mnt2", unix.MS_NOATIME, true},
		`40 35 0:2 / /with\040space\134 ro,nosuid,nodev,noexec,relatime - x y z`: {`/with space\`, unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RELATIME, true},
		"36 35 98:0": {},
		"":           {},
	} {
		point, flags, ok := mountPoint(line)
		if point != want.point || flags != want.flags || ok != want.ok {
			t.Errorf("%q: got %q %x %v", line, point, flags, ok)
		}
	}
}

// ends returns two connected ends of a control connection.
func ends(t *testing.T) (a, b *control.Conn) {
	t.Helper()
	a, f, err := control.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if b, err = control.Open(fd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// Cables come as nodes get ready, and end in the order of the lab.
func TestLinksAreSorted(t *testing.T) {
	orchestrator, fabric := ends(t)
	go func() {
		orchestrator.SendValue(KindLinks, []Link{{Index: 2, Node: "c", Kind: TAP}}, 0)
		orchestrator.SendValue(KindLinks, []Link{{Index: 0, Node: "a", Kind: Packet},
			{Index: 1, Node: "b", Kind: TAP}}, 0, 1)
	}()
	links, err := receiveLinks(fabric, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"a", "b", "c"} {
		if l := links[i]; l.Node != name || l.Index != i || l.FD <= 2 {
			t.Errorf("link %d is %+v", i, l)
		}
		unix.Close(links[i].FD)
	}
}

// The fabric says why it has no cables.
func TestNoLinks(t *testing.T) {
	for want, send := range map[string]func(*control.Conn){
		"no cables": func(c *control.Conn) { c.SendError(errors.New("no cables")) },
		"EOF":       func(c *control.Conn) { c.Close() },
	} {
		orchestrator, fabric := ends(t)
		send(orchestrator)
		if _, err := receiveLinks(fabric, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// On a kernel without mount_setattr each mount is made read-only by itself.
func TestPrivRemountEach(t *testing.T) {
	testenv.NeedNamespaces(t)
	result := make(chan error, 1)
	thread.Own(func() { // the thread keeps its mounts to itself
		result <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
				return err
			}
			if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return err
			}
			if err := remountEach(); err != nil {
				return err
			}
			for _, dir := range []string{"/", "/dev/shm"} {
				var st unix.Statfs_t
				if err := unix.Statfs(dir, &st); err == nil && st.Flags&unix.ST_RDONLY == 0 {
					return errors.New(dir + " can be written to")
				}
			}
			return nil
		}()
	})
	if err := <-result; err != nil {
		t.Error(err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs("/", &st); err != nil || st.Flags&unix.ST_RDONLY != 0 {
		t.Fatal("the test's own file system became read-only")
	}
}

// A tree becomes read-only also while other threads of the process start programs. A child has its
// parent's files until it runs its program, and a file that can be written keeps a mount writable
// (EBUSY).
func TestPrivSealWhileProgramsStart(t *testing.T) {
	testenv.NeedNamespaces(t)
	over := make(chan struct{})
	var starters sync.WaitGroup
	for range 4 {
		starters.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					_ = exec.Command("/bin/true").Run()
				}
			}
		})
	}
	for range 100 {
		result := make(chan error, 1)
		thread.Own(func() {
			if err := ownMounts(); err != nil {
				result <- err
				return
			}
			result <- (&tree{user: 1000}).seal()
		})
		if err := <-result; err != nil {
			t.Error(err)
			break
		}
	}
	close(over)
	starters.Wait()
}

// A process that was not started by an orchestrator says so, and does nothing.
func TestBootWithoutAnOrchestrator(t *testing.T) {
	if os.Getenv(stageVar) != "" {
		t.Skip("in a lab")
	}
	done := make(chan struct{})
	thread.Own(func() { // boot sets its parent-death signal
		defer close(done)
		orchestrator, node := ends(t)
		orchestrator.SendValue("hello", nil)
		if _, err := Node(node); err == nil || !strings.Contains(err.Error(), `"hello" came where "boot"`) {
			t.Errorf("got %v", err)
		}
		orchestrator, fabric := ends(t)
		orchestrator.Close()
		if _, err := Fabric(fabric); err == nil || !strings.Contains(err.Error(), "boot fabric: EOF") {
			t.Errorf("got %v", err)
		}
	})
	<-done
}
