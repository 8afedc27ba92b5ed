package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Options say how modules run.
type Options struct {
	Memory    uint32 // maximum size of the memory, in pages of 64 KiB
	Start     int64  // fuel for the start of an instance
	Cache     string // folder for the compiled code of this module; "": it is compiled each time
	Interpret bool   // interpret the code instead of compiling it
	Slow      func() // called if compiling takes longer than slowFrom; may be nil
}

// slowFrom is the duration from which on a compilation is reported to the user.
const slowFrom = time.Second

// Program is a module, checked and compiled.
type Program struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

// Compile checks a module and compiles it. A cache that other users can change is not used, and one
// that is damaged is replaced. When ctx ends, Compile returns its cause. The compiler of wazero
// cannot be interrupted and continues until it is done, which takes some seconds (maxWork).
func Compile(ctx context.Context, module []byte, o Options) (*Program, error) {
	metered, err := meter(module, o.Start)
	if err != nil {
		return nil, err
	}
	type result struct {
		program *Program
		err     error
	}
	done := make(chan result, 1)
	go func() {
		p, err := compileCached(metered, o)
		done <- result{p, err}
	}()
	slow := time.NewTimer(slowFrom)
	defer slow.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-slow.C:
			if o.Slow != nil {
				o.Slow()
			}
		case r := <-done:
			return r.program, r.err
		}
	}
}

// compileCached compiles a rewritten module, with the cache if that can be trusted.
func compileCached(metered []byte, o Options) (*Program, error) {
	if o.Cache == "" || o.Interpret || private(o.Cache) != nil {
		o.Cache = ""
		return compile(metered, o)
	}
	if !sound(o.Cache) {
		forget(o.Cache)
	}
	p, err := compile(metered, o)
	if err == nil {
		return p, nil
	}
	forget(o.Cache)
	o.Cache = ""
	return compile(metered, o)
}

func compile(metered []byte, o Options) (p *Program, err error) {
	ctx := context.Background()
	config := wazero.NewRuntimeConfigCompiler()
	if o.Interpret {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	config = config.WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(o.Memory).
		WithMemoryCapacityFromMax(true).WithDebugInfoEnabled(false)
	if o.Cache != "" {
		if cache, err := wazero.NewCompilationCacheWithDir(o.Cache); err == nil { // else it is only slower
			config = config.WithCompilationCache(cache)
		}
	}
	r := wazero.NewRuntimeWithConfig(ctx, config)
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("cannot be compiled: %v", v)
		}
		if err != nil {
			p = nil
			_ = r.Close(ctx) // the error says more
		}
	}()
	if err := addStubs(ctx, r); err != nil {
		return nil, err
	}
	compiled, err := r.CompileModule(ctx, metered)
	if err != nil {
		return nil, fmt.Errorf("invalid module: %s", firstLine(err))
	}
	return &Program{runtime: r, compiled: compiled}, nil
}

// Close frees the program and all its instances.
func (p *Program) Close() error { return p.runtime.Close(context.Background()) }

// Instance is a running module. It belongs to one goroutine at a time.
type Instance struct {
	ctx    context.Context
	module api.Module
	fuel   api.MutableGlobal
	said   said // during the last call
	exited *errExit
}

// New starts an instance of the program: its start function and its function _initialize, if it has
// them.
func (p *Program) New() (in *Instance, err error) {
	in = new(Instance)
	in.ctx = context.WithValue(context.Background(), instanceKey{}, in)
	defer func() {
		if v := recover(); v != nil {
			in, err = nil, fmt.Errorf("cannot be started: %v", v)
		}
	}()
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	module, err := p.runtime.InstantiateModule(in.ctx, p.compiled, config)
	if err != nil {
		return nil, fmt.Errorf("cannot be started: %w", in.explain(err))
	}
	in.module = module
	in.fuel, _ = module.ExportedGlobal(fuelName).(api.MutableGlobal)
	if in.fuel == nil || module.Memory() == nil {
		in.Close()
		return nil, errors.New("it has no memory")
	}
	for _, name := range []string{startName, "_initialize"} {
		if err := in.run(name); err != nil {
			in.Close()
			return nil, err
		}
	}
	return in, nil
}

// run calls a function that starts the module, if there is one.
func (in *Instance) run(name string) error {
	f := in.module.ExportedFunction(name)
	if f == nil {
		return nil
	}
	if d := f.Definition(); len(d.ParamTypes())+len(d.ResultTypes()) > 0 {
		return fmt.Errorf("its function %s has parameters or results", name)
	}
	if err := f.CallWithStack(in.ctx, nil); err != nil {
		return fmt.Errorf("cannot be started: %w", in.explain(err))
	}
	return nil
}

// Close frees the instance.
func (in *Instance) Close() { _ = in.module.Close(in.ctx) }

// Function is an exported function of an instance.
type Function struct {
	in   *Instance
	call api.Function
}

// Function returns an exported function. An error says that there is none with these types.
func (in *Instance) Function(name string, params, results []api.ValueType) (Function, error) {
	f := in.module.ExportedFunction(name)
	if f == nil {
		return Function{}, fmt.Errorf("it exports no function %s", name)
	}
	d := f.Definition()
	if !bytes.Equal(d.ParamTypes(), params) || !bytes.Equal(d.ResultTypes(), results) {
		return Function{}, fmt.Errorf("its function %s has other parameters or results than the interface", name)
	}
	return Function{in, f}, nil
}

// Call calls the function with at most the given fuel. stack has the parameters, and the results
// afterwards. After an error the instance is useless.
func (f Function) Call(fuel int64, stack []uint64) error {
	f.in.fuel.Set(uint64(fuel))
	f.in.said.clear()
	if err := f.call.CallWithStack(f.in.ctx, stack); err != nil {
		return f.in.explain(err)
	}
	return nil
}

// Printed returns the lines that the module printed during the last call, or the last of many.
func (in *Instance) Printed() (lines []string) {
	for line := range bytes.Lines(in.said.kept) {
		lines = append(lines, shown(line))
	}
	return lines
}

// Fuel returns what the last call left of its fuel; below zero it took more.
func (in *Instance) Fuel() int64 { return int64(in.fuel.Get()) }

// View returns the bytes of the memory from at to at + n, without a copy. It stays valid: memory
// that grows is not moved.
func (in *Instance) View(at, n uint32) ([]byte, bool) { return in.module.Memory().Read(at, n) }

// Errors of a call that reached a limit.
var (
	ErrFuel   = errors.New("it ran too long")
	ErrMemory = errors.New("it needs too much memory")
)

// explain returns the reason of a failed call in words, with the end of what the module printed
// during the call. Compilers print why a program panics and then end it.
func (in *Instance) explain(err error) error {
	var fuel int64
	if in.fuel != nil {
		fuel = in.Fuel()
	}
	switch asked, refused := refusedPages(fuel); {
	case refused:
		err = fmt.Errorf("%w: it has %s and asked for %s more; the limit is %s", ErrMemory,
			mebibytes(in.pages()), mebibytes(asked), mebibytes(in.maxPages()))
	case in.exited != nil:
		err = *in.exited
	case fuel < 0:
		err = ErrFuel
	default:
		err = errors.New(firstLine(err))
	}
	if text := in.said.text(); text != "" {
		return fmt.Errorf("%w; it printed %q", err, text)
	}
	return err
}

// pages returns the size of the memory in pages of 64 KiB.
func (in *Instance) pages() uint64 { return uint64(in.module.Memory().Size() >> 16) }

// maxPages returns the size that the memory may have: its own limit, or that of Options.Memory.
func (in *Instance) maxPages() uint64 {
	n, _ := in.module.Memory().Definition().Max()
	return uint64(n)
}

// mebibytes writes a number of pages as MiB.
func mebibytes(pages uint64) string {
	return strconv.FormatFloat(float64(pages)/16, 'f', -1, 64) + " MiB"
}

// firstLine returns an error of wazero without its stack trace.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimPrefix(strings.TrimSuffix(line, " (recovered by wazero)"), "wasm error: ")
}
