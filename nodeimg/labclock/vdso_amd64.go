package labclock

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
)

// vdso is the image that the running kernel maps into every 64-bit program. An image with no size
// is that of a kernel without one: its programs read clocks by system calls.
type vdso struct {
	size     uint64
	original uint64 // offset of clock_gettime
	call     uint64 // offset of a syscall instruction

	// symbols maps the offset of each symbol's value to the function of the code page that replaces
	// it.
	symbols map[uint64]string
}

// replaced are the symbols of the vDSO that read clocks.
var replaced = map[string]string{
	"__vdso_clock_gettime": clockGettime, "clock_gettime": clockGettime,
	"__vdso_gettimeofday": getTimeOfDay, "gettimeofday": getTimeOfDay,
	"__vdso_time": secondsNow, "time": secondsNow,
}

// errNarrow is the error for a process of another word size.
var errNarrow = errors.New("it is not a 64-bit program")

// vdsoAt returns where the vDSO of a process is, and 0 if it has none.
func vdsoAt(pid string) (uint64, error) {
	const sysinfoEHDR = 33 // AT_SYSINFO_EHDR, getauxval(3)
	text, err := os.ReadFile("/proc/" + pid + "/auxv")
	if err != nil {
		return 0, err
	}
	for ; len(text) >= 16; text = text[16:] {
		switch key := binary.LittleEndian.Uint64(text); {
		case key == sysinfoEHDR:
			return binary.LittleEndian.Uint64(text[8:]), nil
		case key > math.MaxUint32: // a key and its value, of 32 bits each
			return 0, errNarrow
		}
	}
	return 0, nil
}

// maxVDSO bounds the image, which has some KiB.
const maxVDSO = 64 << 10

// ownVDSO returns the image of this process.
func ownVDSO() (*vdso, error) {
	base, err := vdsoAt("self")
	if base == 0 || err != nil {
		return &vdso{}, err
	}
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	image := make([]byte, maxVDSO)
	n, _ := memory.ReadAt(image, int64(base)) // up to the end of the mapping
	return parseVDSO(image[:n])
}

// parseVDSO finds in an image what patching needs.
func parseVDSO(image []byte) (*vdso, error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, fmt.Errorf("the kernel's vDSO: %w", err)
	}
	v := &vdso{symbols: map[uint64]string{}}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Off == 0 && p.Vaddr == 0 && p.Memsz <= uint64(len(image)) {
			v.size = p.Memsz
		}
	}
	dynsym := f.Section(".dynsym")
	symbols, err := f.DynamicSymbols()
	if err != nil || dynsym == nil {
		return nil, errors.Join(errors.New("the kernel's vDSO has no table of symbols"), err)
	}
	const symbolSize, valueAt = 24, 8 // Elf64_Sym
	for i, s := range symbols {
		at := dynsym.Offset + uint64(i+1)*symbolSize + valueAt // symbol 0 is not among symbols
		if at+8 > v.size || binary.LittleEndian.Uint64(image[at:]) != s.Value {
			return nil, fmt.Errorf("the kernel's vDSO has no symbol at %#x", at)
		}
		if function, ok := replaced[s.Name]; ok {
			v.symbols[at] = function
		}
		if s.Name == "__vdso_clock_gettime" {
			v.original = s.Value
		}
	}
	code := f.Section(".text")
	if v.original == 0 || code == nil || code.Offset != code.Addr || code.Offset+code.Size > v.size {
		return nil, errors.New("the kernel's vDSO has no clock_gettime")
	}
	i := bytes.Index(image[code.Offset:code.Offset+code.Size], []byte{0x0f, 0x05})
	if i < 0 {
		return nil, errors.New("the kernel's vDSO has no syscall instruction")
	}
	v.call = code.Offset + uint64(i)
	return v, nil
}
