package labclock

import (
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// Masks of clocks, by their numbers: those that show Lines.Mono, and those that show Lines.Real.
const (
	monoClocks = 1<<unix.CLOCK_MONOTONIC | 1<<unix.CLOCK_MONOTONIC_RAW | 1<<unix.CLOCK_MONOTONIC_COARSE |
		1<<unix.CLOCK_BOOTTIME | 1<<unix.CLOCK_BOOTTIME_ALARM
	realClocks = 1<<unix.CLOCK_REALTIME | 1<<unix.CLOCK_REALTIME_COARSE | 1<<unix.CLOCK_REALTIME_ALARM |
		1<<unix.CLOCK_TAI
	lastClock = unix.CLOCK_TAI
)

// Functions of the code page, by the names that the vDSO exports them under.
const (
	clockGettime = "clock_gettime"
	getTimeOfDay = "gettimeofday"
	secondsNow   = "time"
)

// An assembler collects machine code. Jumps and addresses of data are 32-bit displacements that end
// their instructions; they are filled in by finish.
type assembler struct {
	code   []byte
	labels map[string]int
	uses   []use
}

// use is a displacement to a label, which counts from its own end.
type use struct {
	at    int
	label string
}

// op appends an instruction. The text says in Intel's syntax what it is; a label that it refers to
// comes last.
func (a *assembler) op(text string, code ...byte) { a.code = append(a.code, code...) }

// to appends an instruction that ends with the displacement to a label.
func (a *assembler) to(label, text string, code ...byte) {
	a.op(text, code...)
	a.uses = append(a.uses, use{len(a.code), label})
	a.code = append(a.code, 0, 0, 0, 0)
}

// label names the present position.
func (a *assembler) label(name string) { a.labels[name] = len(a.code) }

// quad appends a 64-bit word under a label.
func (a *assembler) quad(label string, value uint64) {
	a.label(label)
	a.code = binary.LittleEndian.AppendUint64(a.code, value)
}

func (a *assembler) finish() ([]byte, map[string]int) {
	for _, u := range a.uses {
		target, ok := a.labels[u.label]
		if !ok {
			panic(fmt.Sprintf("labclock: no label %q", u.label))
		}
		binary.LittleEndian.PutUint32(a.code[u.at:], uint32(int32(target-u.at-4)))
	}
	return a.code, a.labels
}

// imm returns an instruction's bytes followed by a 32-bit operand.
func imm(v uint32, code ...byte) []byte {
	return binary.LittleEndian.AppendUint32(slices.Clone(code), v)
}

// assemble returns the code page of a program: the functions that replace those of the vDSO, and
// the offset of each. original is the address of the vDSO's own clock_gettime, page that of the
// node's Page. Both differ between programs, so each has a code page of its own.
//
// The functions follow the System V ABI: arguments in rdi and rsi, result in rax; rbx and r12 to
// r15 are preserved, and rsp is a multiple of 16 at calls.
func assemble(original, page uint64) (code []byte, functions map[string]int) {
	a := &assembler{labels: map[string]int{}}
	a.clockGettime()
	a.getTimeOfDay()
	a.secondsNow()
	a.quad("original", original)
	a.quad("page", page)
	return a.finish()
}

// clockGettime writes int clock_gettime(clockid_t, struct timespec *). In C:
//
//	if (id > lastClock || !(1 << id & (monoClocks|realClocks))) return original(id, ts);
//	line = 1 << id & realClocks ? &page->real : &page->mono;
//	do {
//		sequence = page->sequence;
//		if (original(CLOCK_MONOTONIC, &now)) return error;
//		l = line + copyWords * (sequence & 1);
//		ns = l->value + (max(now - l->base, 0) * l->rate >> shift);
//	} while (sequence != page->sequence);
//	ts->tv_sec = ns / 1000000000; ts->tv_nsec = ns % 1000000000; return 0;
//
// x86 keeps loads in their order, so this needs no fences.
func (a *assembler) clockGettime() {
	a.label(clockGettime)
	a.op("cmp edi, lastClock", 0x83, 0xff, lastClock)
	a.to("other", "ja other ; unsigned: also clocks of processes and devices, which are negative", 0x0f, 0x87)
	a.op("mov ecx, edi", 0x89, 0xf9)
	a.op("mov eax, 1", imm(1, 0xb8)...)
	a.op("shl eax, cl", 0xd3, 0xe0)
	a.op("test eax, monoClocks|realClocks", imm(monoClocks|realClocks, 0xa9)...)
	a.to("other", "jz other ; CPU time", 0x0f, 0x84)
	a.op("push rbx", 0x53)
	a.op("push r12", 0x41, 0x54)
	a.op("push r13", 0x41, 0x55)
	a.op("push r14", 0x41, 0x56)
	a.op("sub rsp, 24 ; [rsp]: struct timespec now", 0x48, 0x83, 0xec, 24)
	a.op("mov rbx, rsi ; ts", 0x48, 0x89, 0xf3)
	a.to("page", "mov r12, [rip+page]", 0x4c, 0x8b, 0x25)
	a.op("lea r13, [r12+8*atMono] ; line", 0x4d, 0x8d, 0x6c, 0x24, 8*atMono)
	a.op("test eax, realClocks", imm(realClocks, 0xa9)...)
	a.to("again", "jz again", 0x0f, 0x84)
	a.op("lea r13, [r12+8*atReal]", 0x4d, 0x8d, 0x6c, 0x24, 8*atReal)
	a.label("again")
	a.op("mov r14, [r12] ; sequence", 0x4d, 0x8b, 0x34, 0x24)
	a.op("mov edi, CLOCK_MONOTONIC", imm(unix.CLOCK_MONOTONIC, 0xbf)...)
	a.op("mov rsi, rsp", 0x48, 0x89, 0xe6)
	a.to("original", "call [rip+original]", 0xff, 0x15)
	a.op("test eax, eax", 0x85, 0xc0)
	a.to("return", "jnz return ; its error", 0x0f, 0x85)
	a.op("imul rax, [rsp], 1000000000", imm(1e9, 0x48, 0x69, 0x04, 0x24)...)
	a.op("add rax, [rsp+8] ; CLOCK_MONOTONIC in ns", 0x48, 0x03, 0x44, 0x24, 8)
	a.op("mov ecx, r14d", 0x44, 0x89, 0xf1)
	a.op("and ecx, 1", 0x83, 0xe1, 1)
	a.op("imul ecx, ecx, 8*copyWords", 0x6b, 0xc9, 8*copyWords)
	a.op("add rcx, r13 ; l", 0x4c, 0x01, 0xe9)
	a.op("xor edx, edx", 0x31, 0xd2)
	a.op("sub rax, [rcx+8*lineBase]", 0x48, 0x2b, 0x41, 8*lineBase)
	a.op("cmovb rax, rdx ; 0 before the base", 0x48, 0x0f, 0x42, 0xc2)
	a.op("mul qword [rcx+8*lineRate] ; rdx:rax", 0x48, 0xf7, 0x61, 8*lineRate)
	a.op("shrd rax, rdx, shift", 0x48, 0x0f, 0xac, 0xd0, shift)
	a.op("add rax, [rcx+8*lineValue]", 0x48, 0x03, 0x41, 8*lineValue)
	a.op("cmp r14, [r12]", 0x4d, 0x3b, 0x34, 0x24)
	a.to("again", "jne again", 0x0f, 0x85)
	a.op("xor edx, edx", 0x31, 0xd2)
	a.op("mov ecx, 1000000000", imm(1e9, 0xb9)...)
	a.op("div rcx", 0x48, 0xf7, 0xf1)
	a.op("mov [rbx], rax ; seconds", 0x48, 0x89, 0x03)
	a.op("mov [rbx+8], rdx ; nanoseconds", 0x48, 0x89, 0x53, 8)
	a.op("xor eax, eax", 0x31, 0xc0)
	a.label("return")
	a.op("add rsp, 24", 0x48, 0x83, 0xc4, 24)
	a.op("pop r14", 0x41, 0x5e)
	a.op("pop r13", 0x41, 0x5d)
	a.op("pop r12", 0x41, 0x5c)
	a.op("pop rbx", 0x5b)
	a.op("ret", 0xc3)
	a.label("other")
	a.to("original", "jmp [rip+original]", 0xff, 0x25)
}

// getTimeOfDay writes int gettimeofday(struct timeval *, struct timezone *). Either may be NULL.
func (a *assembler) getTimeOfDay() {
	a.label(getTimeOfDay)
	a.op("test rsi, rsi", 0x48, 0x85, 0xf6)
	a.to("no zone", "jz no zone", 0x0f, 0x84)
	a.op("mov qword [rsi], 0 ; UTC, as the kernel's is but for machines that set it", imm(0, 0x48, 0xc7, 0x06)...)
	a.label("no zone")
	a.op("test rdi, rdi", 0x48, 0x85, 0xff)
	a.to("done", "jz done", 0x0f, 0x84)
	a.op("push rdi", 0x57)
	a.op("mov rsi, rdi ; a timespec is as large as a timeval", 0x48, 0x89, 0xfe)
	a.op("xor edi, edi ; CLOCK_REALTIME", 0x31, 0xff)
	a.to(clockGettime, "call clock_gettime", 0xe8)
	a.op("pop rdi", 0x5f)
	a.op("test eax, eax", 0x85, 0xc0)
	a.to("failed", "jnz failed", 0x0f, 0x85)
	a.op("mov rax, [rdi+8]", 0x48, 0x8b, 0x47, 8)
	a.op("xor edx, edx", 0x31, 0xd2)
	a.op("mov ecx, 1000", imm(1000, 0xb9)...)
	a.op("div rcx", 0x48, 0xf7, 0xf1)
	a.op("mov [rdi+8], rax ; microseconds", 0x48, 0x89, 0x47, 8)
	a.label("done")
	a.op("xor eax, eax", 0x31, 0xc0)
	a.label("failed")
	a.op("ret", 0xc3)
}

// secondsNow writes time_t time(time_t *). The argument may be NULL.
func (a *assembler) secondsNow() {
	a.label(secondsNow)
	a.op("push rdi", 0x57)
	a.op("sub rsp, 16", 0x48, 0x83, 0xec, 16)
	a.op("mov rsi, rsp", 0x48, 0x89, 0xe6)
	a.op("xor edi, edi ; CLOCK_REALTIME", 0x31, 0xff)
	a.to(clockGettime, "call clock_gettime", 0xe8)
	a.op("mov rax, [rsp]", 0x48, 0x8b, 0x04, 0x24)
	a.op("add rsp, 16", 0x48, 0x83, 0xc4, 16)
	a.op("pop rdi", 0x5f)
	a.op("test rdi, rdi", 0x48, 0x85, 0xff)
	a.to("nowhere", "jz nowhere", 0x0f, 0x84)
	a.op("mov [rdi], rax", 0x48, 0x89, 0x07)
	a.label("nowhere")
	a.op("ret", 0xc3)
}
