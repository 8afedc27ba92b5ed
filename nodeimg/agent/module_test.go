package agent

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/sandbox/sandboxtest"
	"weft/transport/cc/wasm"
)

// A module arrives in a file that may lie: it is shorter, longer or other than the message says, or
// no file. Each is an error with a reason, soon; only the bytes with the hash are loaded.
func TestModuleFilesThatLie(t *testing.T) {
	module := sandboxtest.Module{Event: sandboxtest.Answer(1234)}.Bytes()
	other := sandboxtest.Module{Event: sandboxtest.Answer(1235)}.Bytes()
	file := func(text []byte, size int64) int {
		fd, err := unix.MemfdCreate("module", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err == nil {
			_, err = unix.Write(fd, text)
		}
		if err == nil {
			err = unix.Ftruncate(fd, size)
		}
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	pipe := func() int {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fds[1]) })
		return fds[0]
	}
	n := len(module)
	said := Module{Hash: wasm.HashOf(module), Size: n}
	with := func(change func(m *Module)) Module {
		m := said
		change(&m)
		return m
	}
	for _, c := range []struct {
		name string
		m    Module
		fds  []int
		want string
	}{
		{"none", said, nil, "with 0 descriptors"},
		{"empty", said, []int{file(nil, 0)}, "EOF"},
		{"shrunk", said, []int{file(module, int64(n)-1)}, "EOF"},
		{"other bytes", said, []int{file(other, int64(n))}, "do not have the hash"},
		{"a hole", said, []int{file(nil, int64(n))}, "do not have the hash"},
		{"a pipe", said, []int{pipe()}, "illegal seek"},
		{"negative", with(func(m *Module) { m.Size = -1 }), []int{file(module, int64(n))}, "module of -1 bytes"},
		{"huge", with(func(m *Module) { m.Size = 1 << 40 }), []int{file(module, int64(n))}, "at most"},
		{"huge code", with(func(m *Module) { m.CompiledSize = 1 << 40 }), []int{file(module, int64(n))}, "at most"},
		{"no code", with(func(m *Module) { m.CompiledSize = 100 }), []int{file(module, int64(n))}, "EOF"},
		{"a longer file, and one more", said, []int{file(module, 1<<30), file(nil, 0)}, ""},
	} {
		err := c.m.load(c.fds)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
		for _, fd := range c.fds {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				t.Errorf("%s: a descriptor stays open", c.name)
			}
		}
	}
}
