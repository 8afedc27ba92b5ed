// Package sandbox runs untrusted WebAssembly so that it can neither harm the process nor make a run
// depend on the machine.
//
//	bytes ──Compile──► Program ──New──► Instance ──Call──► results, or an error
//	          │
//	          └ meter: checks what the module may contain, and adds counters and canonical NaNs
//
// The one idea: the module is rewritten before it is compiled. Every function and every loop
// subtracts from a counter, the fuel, and traps when nothing is left, so that a call ends after the
// same instruction on every machine. A timer could not do that. Bits of a NaN are made canonical
// wherever a module could see them, because processors differ in them.
//
// These must hold. A module imports nothing but a few functions of WASI (wasi.go), which know no
// time, no files and no random numbers. Its memory, tables, locals and nesting are bounded before
// wazero sees them, so a few bytes cannot ask for gigabytes. What Compile returns an error for
// leaves nothing behind. An Instance belongs to one goroutine at a time and is useless after an
// error.
//
// The compiler and the interpreter of wazero give the same results (Options.Interpret). Start
// reading at Compile, then meter. docs/adr/0210 says why wazero, and why the counter.
package sandbox
