package uml

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	line     = "/dev/ttyS0" // the serial line to Run
	inTmp    = "/run/tmp"   // TMPDIR of the program
	farewell = 10 * time.Second
)

// beInit is the first process under the new kernel. It never returns, because the kernel panics
// when its first process ends. Run stops the kernel after the exit message; without Run, init stops
// it.
func beInit() {
	tty, err := openLine()
	if err != nil {
		fmt.Fprintf(os.Stderr, "weft: %v\n", err) // goes to the console
		powerOff()
	}
	out := &writer{to: tty}
	x := exit{}
	if err := serve(tty, out, &x); err != nil {
		x = exit{Code: 126, Error: err.Error()}
	}
	unix.Sync()
	if err := out.value(kindExit, x); err != nil {
		fmt.Fprintf(os.Stderr, "weft: %v\n", err)
	}
	time.Sleep(farewell)
	powerOff()
}

func powerOff() {
	unix.Sync()
	err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	fmt.Fprintf(os.Stderr, "weft: power off: %v\n", err)
	select {}
}

// openLine opens the serial line in raw mode, so that it carries all bytes like a socket.
func openLine() (*os.File, error) {
	if err := mount("proc", "/proc", "proc", ""); err != nil { // first, because Go's runtime and libraries read it
		return nil, err
	}
	tty, err := os.OpenFile(line, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	t, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", line, err)
	}
	t.Iflag, t.Oflag, t.Lflag = 0, 0, 0 // termios(3), cfmakeraw and no flow control
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8 | unix.CREAD | unix.CLOCAL
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, t); err != nil {
		return nil, fmt.Errorf("%s: %w", line, err)
	}
	return tty, nil
}

// serve sends hello, receives the order and carries it out.
func serve(in io.Reader, out *writer, x *exit) error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	if err := out.value(kindHello, hello{Release: unix.ByteSliceToString(u.Release[:])}); err != nil {
		return err
	}
	k, body, err := readFrame(in)
	if err != nil {
		return fmt.Errorf("order: %w", err)
	}
	var o order
	if err := json.Unmarshal(body, &o); k != kindOrder || err != nil {
		return fmt.Errorf("order: a frame of kind %c: %w", k, err)
	}
	if err := settle(&o); err != nil {
		return err
	}
	x.Code, err = follow(&o, in, out)
	return err
}

func mount(what, where, kind, options string) error {
	flags := uintptr(unix.MS_NOSUID)
	if err := unix.Mount(what, where, kind, flags, options); err != nil {
		return fmt.Errorf("mount %s: %w", where, err)
	}
	return nil
}

// settle sets up the file systems, names and network that a program expects.
func settle(o *order) error {
	for _, m := range []struct{ where, kind, options string }{
		{"/sys", "sysfs", ""},
		{"/sys/fs/cgroup", "cgroup2", ""},
		{"/run", "tmpfs", "mode=755"},
		{inTmp, "tmpfs", "mode=1777"},
		{"/dev/pts", "devpts", "mode=620,ptmxmode=666"},
		{"/dev/shm", "tmpfs", "mode=1777"},
	} {
		if m.kind == "tmpfs" || m.kind == "devpts" {
			if err := os.MkdirAll(m.where, 0o755); err != nil {
				return err
			}
		}
		if err := mount(m.kind, m.where, m.kind, m.options); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		if err := os.Symlink("/proc/self/fd"+to, "/dev/"+name); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if err := unix.Sethostname([]byte(o.Host)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if err := setClock(o.Clock); err != nil {
		return err
	}
	// Write the program's files to the machine soon, in case the kernel is killed: the defaults are
	// 5 and 30 s.
	for name, value := range map[string]string{"dirty_writeback_centisecs": "50", "dirty_expire_centisecs": "100"} {
		if err := os.WriteFile("/proc/sys/vm/"+name, []byte(value), 0); err != nil {
			return err
		}
	}
	if o.Modules != "" {
		if err := loadModules(o.Modules); err != nil {
			return err
		}
	}
	return loopbackUp()
}

// setClock sets the time of day to the machine's if they differ by more than the message may have
// taken.
func setClock(ns int64) error {
	if d := time.Since(time.Unix(0, ns)); d > -time.Second && d < time.Second {
		return nil
	}
	t := unix.NsecToTimeval(ns)
	if err := unix.Settimeofday(&t); err != nil {
		return fmt.Errorf("set the clock: %w", err)
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}

// follow runs the program and returns how it ended, after all its descendants have ended.
func follow(o *order, in io.Reader, out *writer) (code int, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	var pumps sync.WaitGroup
	files := []*os.File{null, nil, nil}
	for i, k := range []kind{kindOut, kindErr} {
		r, w, err := os.Pipe()
		if err != nil {
			return 0, err
		}
		files[1+i] = w
		pumps.Go(func() { pump(r, out, k) })
	}
	p, err := os.StartProcess(string(o.Path), strs(o.Args), &os.ProcAttr{
		Dir: string(o.Dir), Env: strs(o.Env), Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	for _, f := range files {
		f.Close()
	}
	if err != nil {
		return 0, err
	}
	go passSignals(in, p.Pid) // until the kernel ends
	code, err = reap(p.Pid)
	_ = unix.Kill(-1, unix.SIGKILL) // all remaining processes; -1 excludes init itself
	pumps.Wait()
	return code, err
}

// pump forwards the program's output until nobody can write any more.
func pump(r io.ReadCloser, out *writer, k kind) {
	defer r.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := r.Read(b)
		if n > 0 && out.frame(k, b[:n]) != nil || err != nil {
			return
		}
	}
}

// passSignals sends signals from the line to the program's process group, like a terminal: a shell
// handles a signal only after the command it runs has ended.
func passSignals(in io.Reader, pid int) {
	for {
		k, body, err := readFrame(in)
		if err != nil {
			return
		}
		if k == kindSignal && len(body) == 1 {
			_ = unix.Kill(-pid, unix.Signal(body[0])) // the group may just have ended
		}
	}
}

// reap waits for all children, including orphans, until the program itself has ended.
func reap(pid int) (code int, err error) {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for %d: %w", pid, err)
		case got == pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case got == pid && status.Exited():
			return status.ExitStatus(), nil
		}
	}
}
