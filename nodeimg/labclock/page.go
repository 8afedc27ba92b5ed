package labclock

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Line is a clock's time: Value at CLOCK_MONOTONIC Base, both in nanoseconds, and Rate
// nanoseconds more with each one. It shows Value before Base.
type Line struct {
	Base  int64
	Value int64
	Rate  float64 // 1/D for an exact clock; above 0, at most maxRate
}

// Lines are the clocks of a node. Mono is CLOCK_MONOTONIC, also raw, coarse and CLOCK_BOOTTIME.
// Real is CLOCK_REALTIME, also coarse and CLOCK_TAI.
type Lines struct{ Mono, Real Line }

// Begin is CLOCK_REALTIME at lab time 0, in nanoseconds: 1 January 2037, 00:00 UTC. It is the same
// in every lab, recognizably not the machine's, and later: see the package comment. Programs with
// 32-bit times have a year from there.
const Begin = 2114380800 * 1e9

// step is the grid of CLOCK_MONOTONIC at lab time 0. A float64, as in Python's time.monotonic, has
// a resolution of 0.2 ns there; larger values have a coarser one.
const step = 1e6 * 1e9

// Exact returns clocks without error: lab time is 0 at CLOCK_MONOTONIC t0, and advances by 1
// nanosecond in dilation real ones.
func Exact(t0 int64, dilation float64) Lines {
	mono := (max(0, t0) + step/2 + step) / step * step // at least six days ahead of the machine's
	return Lines{Mono: Line{t0, mono, 1 / dilation}, Real: Line{t0, Begin, 1 / dilation}}
}

// shift is the number of fraction bits of a rate as the program's code multiplies by it, and
// maxRate what then fits into 64 bits.
const (
	shift   = 62
	maxRate = 3
)

// scaled returns the rate of a line in units of 2^-shift.
func (l *Line) scaled() uint64 { return uint64(math.Round(math.Ldexp(l.Rate, shift))) }

func (l *Line) check() error {
	if !(l.Rate > 0 && l.Rate <= maxRate) || l.Value < 0 || l.scaled() == 0 {
		return fmt.Errorf("a clock that shows %d ns and gains %g ns per ns is not one", l.Value, l.Rate)
	}
	return nil
}

// Indexes of the 64-bit words of a page. A line is three words. There are two copies of both lines:
// readers take the one that the parity of the sequence chooses, and Set writes the other one.
const (
	atSequence = iota
	atMono
	atReal = atMono + lineWords
	atName = atMono + 2*copyWords // a random number, by which the keeper recognizes the page

	lineWords           = 3
	copyWords           = 2 * lineWords
	lineBase, lineValue = 0, 1
	lineRate            = 2
	words               = atName + 1
)

// pageSize is the size of a page of memory on every architecture that this package covers.
const pageSize = 4096

// A Page is memory with a node's clocks, which the node's programs share and only its owner writes.
// A reader tries again if the sequence has changed, and waits for no writer that was preempted or
// has died. Set may be called by one goroutine at a time.
type Page struct {
	memory []byte
	file   *os.File // sealed: cannot be mapped to write, or written
}

// NewPage returns a page that shows lines.
func NewPage(lines Lines) (*Page, error) {
	fd, err := unix.MemfdCreate("weft-clock", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memory for clocks: %w", err)
	}
	p := &Page{file: os.NewFile(uintptr(fd), "weft-clock")}
	if err = unix.Ftruncate(fd, pageSize); err == nil {
		p.memory, err = unix.Mmap(fd, 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS,
			unix.F_SEAL_FUTURE_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err == nil {
		var name [8]byte
		_, _ = rand.Read(name[:]) // never returns an error
		atomic.StoreUint64(p.word(atName), binary.LittleEndian.Uint64(name[:]))
		err = p.Set(lines)
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("memory for clocks: %w", err)
	}
	return p, nil
}

// openPage maps a page to read it. It takes the file over.
func openPage(file *os.File) (*Page, error) {
	var info unix.Stat_t
	err := unix.Fstat(int(file.Fd()), &info)
	if err == nil && info.Size != pageSize {
		err = fmt.Errorf("memory for clocks has %d bytes", info.Size)
	}
	p := &Page{file: file}
	if err == nil {
		p.memory, err = unix.Mmap(int(file.Fd()), 0, pageSize, unix.PROT_READ, unix.MAP_SHARED)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close gives the page back. Programs keep it.
func (p *Page) Close() error {
	err := p.file.Close()
	if p.memory != nil {
		err = errors.Join(err, unix.Munmap(p.memory))
		p.memory = nil
	}
	return err
}

// name returns the number by which the keeper recognizes the page in a program.
func (p *Page) name() uint64 { return atomic.LoadUint64(p.word(atName)) }

// word returns word i.
func (p *Page) word(i int) *uint64 { return (*uint64)(unsafe.Pointer(&p.memory[8*i])) }

// Set changes what the clocks show. The lines must begin at or before the present, and the one of
// CLOCK_MONOTONIC at or above what it shows there.
func (p *Page) Set(lines Lines) error {
	if err := errors.Join(lines.Mono.check(), lines.Real.check()); err != nil {
		return err
	}
	sequence := atomic.LoadUint64(p.word(atSequence)) + 1
	other := int(sequence&1) * copyWords
	for at, l := range map[int]*Line{other + atMono: &lines.Mono, other + atReal: &lines.Real} {
		atomic.StoreUint64(p.word(at+lineBase), uint64(l.Base))
		atomic.StoreUint64(p.word(at+lineValue), uint64(l.Value))
		atomic.StoreUint64(p.word(at+lineRate), l.scaled())
	}
	atomic.StoreUint64(p.word(atSequence), sequence)
	return nil
}

// show returns what the clock with its line at word at shows at CLOCK_MONOTONIC now. It computes as
// the program's code does.
func (p *Page) show(at int, now int64) int64 {
	var base, value, rate uint64
	for {
		sequence := atomic.LoadUint64(p.word(atSequence))
		line := at + int(sequence&1)*copyWords
		base = atomic.LoadUint64(p.word(line + lineBase))
		value = atomic.LoadUint64(p.word(line + lineValue))
		rate = atomic.LoadUint64(p.word(line + lineRate))
		if atomic.LoadUint64(p.word(atSequence)) == sequence {
			break
		}
	}
	if now < int64(base) {
		return int64(value)
	}
	high, low := bits.Mul64(uint64(now)-base, rate)
	return int64(value + (high<<(64-shift) | low>>shift))
}

// Mono and Real return what the node's clocks show at CLOCK_MONOTONIC now.
func (p *Page) Mono(now int64) int64 { return p.show(atMono, now) }
func (p *Page) Real(now int64) int64 { return p.show(atReal, now) }
