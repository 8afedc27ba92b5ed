package sandbox

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// wasiName is the module that compilers of Go, Rust and C expect (WASI preview 1).
const wasiName = "wasi_snapshot_preview1"

// Error numbers of WASI.
const (
	wasiOK      = 0
	wasiBadFD   = 8
	wasiFault   = 21
	wasiInvalid = 28
	wasiNoSys   = 52
)

// maxRandom is the maximum number of bytes that random_get fills, and maxVectors that of buffers
// that fd_write takes. Each call costs stubFuel, and each of these buffers writeFuel more.
const (
	maxRandom  = 4096
	maxVectors = 64
	stubFuel   = 50
	writeFuel  = 100
)

// stub is a function of WASI. It has the number of parameters of each type, and one result unless
// it does not return. The parameters are on the stack, where the result goes.
type stub struct {
	params []api.ValueType
	call   func(in *Instance, mem api.Memory, stack []uint64) (errno uint64)
}

const i32, i64 = api.ValueTypeI32, api.ValueTypeI64

func params(types ...api.ValueType) []api.ValueType { return types }

// returning returns a stub that does nothing.
func returning(errno uint64, types ...api.ValueType) stub {
	return stub{types, func(*Instance, api.Memory, []uint64) uint64 { return errno }}
}

// stubs are the functions that a module may import. Clocks stand at 0, random bytes are 0, and
// there are no arguments, variables or files. What a module prints is kept for the message about a
// failure.
var stubs = map[string]stub{
	"args_get":            returning(wasiOK, i32, i32),
	"args_sizes_get":      {params(i32, i32), noStrings},
	"environ_get":         returning(wasiOK, i32, i32),
	"environ_sizes_get":   {params(i32, i32), noStrings},
	"clock_res_get":       returning(wasiNoSys, i32, i32),
	"clock_time_get":      {params(i32, i64, i32), clock},
	"random_get":          {params(i32, i32), noRandom},
	"fd_write":            {params(i32, i32, i32, i32), write},
	"fd_read":             returning(wasiBadFD, i32, i32, i32, i32),
	"fd_close":            returning(wasiBadFD, i32),
	"fd_seek":             returning(wasiBadFD, i32, i64, i32, i32),
	"fd_fdstat_get":       returning(wasiBadFD, i32, i32),
	"fd_fdstat_set_flags": returning(wasiBadFD, i32, i32),
	"fd_prestat_get":      returning(wasiBadFD, i32, i32),
	"fd_prestat_dir_name": returning(wasiBadFD, i32, i32, i32),
	"poll_oneoff":         {params(i32, i32, i32, i32), noWait},
	"sched_yield":         returning(wasiOK),
	"proc_exit":           {params(i32), exit},
}

// stubNames returns the names of the functions that a module may import.
func stubNames() []string { return slices.Sorted(maps.Keys(stubs)) }

func known(name string) bool { _, ok := stubs[name]; return ok }

// put writes zeros.
func put(m api.Memory, at uint64, n int) uint64 {
	to, ok := m.Read(uint32(at), uint32(n))
	if !ok {
		return wasiFault
	}
	clear(to)
	return wasiOK
}

func noStrings(_ *Instance, m api.Memory, s []uint64) uint64 {
	if errno := put(m, s[0], 4); errno != wasiOK {
		return errno
	}
	return put(m, s[1], 4)
}

// noWait ends a wait at once. Go's runtime waits while it prints why a program panics.
func noWait(_ *Instance, m api.Memory, s []uint64) uint64 {
	if s[2] > maxVectors {
		return wasiInvalid
	}
	const eventSize = 32 // an event of zeros is a clock's, without an error
	if errno := put(m, s[1], int(s[2])*eventSize); errno != wasiOK {
		return errno
	}
	if !m.WriteUint32Le(uint32(s[3]), uint32(s[2])) {
		return wasiFault
	}
	return wasiOK
}

func noRandom(_ *Instance, m api.Memory, s []uint64) uint64 {
	if s[1] > maxRandom {
		return wasiInvalid
	}
	return put(m, s[0], int(s[1]))
}

// write keeps what a module writes to its standard output and error.
func write(in *Instance, m api.Memory, s []uint64) uint64 {
	if s[0] != 1 && s[0] != 2 {
		return wasiBadFD
	}
	if s[2] > maxVectors {
		return wasiInvalid
	}
	in.spend(writeFuel * int64(s[2]))
	var total uint32
	for i := range uint32(s[2]) {
		at, ok1 := m.ReadUint32Le(uint32(s[1]) + 8*i)
		n, ok2 := m.ReadUint32Le(uint32(s[1]) + 8*i + 4)
		text, ok3 := m.Read(at, n)
		if !ok1 || !ok2 || !ok3 {
			return wasiFault
		}
		in.said.add(text)
		total += n
	}
	to, ok := m.Read(uint32(s[3]), 4)
	if !ok {
		return wasiFault
	}
	binary.LittleEndian.PutUint32(to, total)
	return wasiOK
}

// errExit is the error of a module that ends itself.
type errExit struct{ code uint32 }

func (e errExit) Error() string { return fmt.Sprintf("it ended itself with exit code %d", e.code) }

func exit(in *Instance, _ api.Memory, s []uint64) uint64 {
	in.exited = &errExit{uint32(s[0])}
	panic(in.exited)
}

// spend takes fuel. The module traps at its next instruction that costs some if nothing is left.
func (in *Instance) spend(fuel int64) { in.fuel.Set(uint64(in.Fuel() - fuel)) }

// instanceKey is the key of the Instance in the context of a call.
type instanceKey struct{}

// addStubs makes the stubs available to modules of a runtime.
func addStubs(ctx context.Context, r wazero.Runtime) error {
	host := r.NewHostModuleBuilder(wasiName)
	for name, s := range stubs {
		call := api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
			in, _ := ctx.Value(instanceKey{}).(*Instance)
			in.spend(stubFuel)
			for i, t := range s.params {
				if t == i32 {
					stack[i] = uint64(uint32(stack[i])) // compiled code leaves anything in the upper half
				}
			}
			errno := s.call(in, m.Memory(), stack)
			if len(stack) > 0 {
				stack[0] = errno
			}
		})
		results := params(i32)
		if name == "proc_exit" {
			results = nil
		}
		host.NewFunctionBuilder().WithGoModuleFunction(call, s.params, results).Export(name)
	}
	_, err := host.Instantiate(ctx)
	return err
}

// clock says that it is one nanosecond past the epoch. Go's runtime does not start at 0.
func clock(_ *Instance, m api.Memory, s []uint64) uint64 {
	if !m.WriteUint64Le(uint32(s[2]), 1) {
		return wasiFault
	}
	return wasiOK
}
