// Package labclock makes programs of a node read lab time instead of the machine's, whatever they
// are: dynamically linked, static, written in Go, with children and threads.
//
// In come a Page, which says what the node's clocks show, and a process that is about to become the
// program (Install). Out come programs whose clock_gettime, gettimeofday and time show lab time.
//
//	supervisor ──Attach──► keeper process ◄──notifications── the program's system calls
//	                          │                                  ▲
//	                          └── ptrace, at exec only ──────────┘
//
// The one idea: a C library and Go's runtime find the functions that read clocks in the vDSO, a
// small ELF image that the kernel maps into each new program. At each exec the keeper maps a page
// of code and the node's Page into the program, and lets the symbols of the vDSO lead to that code
// (exec_amd64.go). The code calls the original for CLOCK_MONOTONIC, then multiplies
// (code_amd64.go). Nothing runs before it: the program has not executed an instruction yet.
//
// A seccomp filter (filter_amd64.go), which children inherit, reports exec to the keeper, so that
// nothing is traced in between: programs fork, thread and trace each other at full speed. It also
// reports what would show or take the machine's time:
//
//   - clocks read by a system call: the keeper answers them (answer_amd64.go)
//   - waits until an instant, such as pthread_cond_timedwait: they last as many real seconds as the
//     instant lies ahead by the program's clock (wait_amd64.go)
//   - the kernel's stamps of packets and POSIX timers at an instant: refused
//
// Waits for a duration are not touched: sleep(1) takes a real second, which is 1/D s of lab time.
//
// Invariants:
//
//   - A program that cannot be given lab time does not run: its exec fails, or it is killed, and
//     standard error says why.
//   - The clocks of a program are ahead of the machine's: CLOCK_REALTIME begins on 1 January 2037,
//     CLOCK_MONOTONIC at a multiple of a million seconds. So the kernel, which compares an instant
//     with its own clocks, never ends a wait too early; the keeper ends it in time.
//   - Programs never write a Page. CLOCK_MONOTONIC never runs back.
//
// What it cannot reach: the time stamp counter read by the program itself, times of files, CPU time
// and /proc/uptime are the machine's.
//
// Only amd64 is covered; elsewhere Available says so. Start reading at Keeper.Attach, then
// session.serve.
package labclock
