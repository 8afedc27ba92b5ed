package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/tetratelabs/wazero/api"

	"weft/internal/sandbox"
)

// MaxBytes is the maximum size of a module.
const MaxBytes = sandbox.MaxModule

// Module is a loaded module: checked, compiled and tried. Several goroutines may use it at once. It
// lives as long as the process.
type Module struct {
	Hash        string // SHA-256 of Bytes, in hexadecimal digits
	Bytes       []byte // the WebAssembly binary, as it was loaded
	Description        // what the module says about itself

	program *sandbox.Program // the rewritten and compiled module, of which instances are made
	cache   string           // folder with its compiled code; "": none
	mu      sync.Mutex       // of all
	all     []*instance      // as many as the largest number of threads that used the module at once
}

// loaded are the modules of this process, and errors of those that could not be loaded, by hash.
// They follow from their bytes, so that loading one again changes nothing.
var loaded = struct {
	sync.Mutex
	all   map[string]result
	cache string
	ctx   context.Context // see SetContext
	slow  func(bytes int) // see SetSlow
}{ctx: context.Background(), slow: func(int) {}}

// result is the result of Load for a module.
type result struct {
	module *Module
	err    error
}

// SetCache names a folder that keeps compiled code: to compile a module in Go takes a second.
// Without it every process compiles. Each module has a folder in it, named by its hash.
func SetCache(dir string) {
	loaded.Lock()
	defer loaded.Unlock()
	loaded.cache = dir
}

// SetContext has Load return the cause of ctx soon after that ends. The process should end then:
// see sandbox.Compile.
func SetContext(ctx context.Context) {
	loaded.Lock()
	defer loaded.Unlock()
	loaded.ctx = ctx
}

// SetSlow has Load call f with the size of a module that takes longer than a second to compile. f
// must not use this package.
func SetSlow(f func(bytes int)) {
	loaded.Lock()
	defer loaded.Unlock()
	loaded.slow = f
}

// HashOf returns the hash of a module's bytes.
func HashOf(bytes []byte) string {
	sum := sha256.Sum256(bytes)
	return hex.EncodeToString(sum[:])
}

// Load returns the module with these bytes, or an error that says what is wrong with it: it cannot
// be compiled, lacks a part of the interface, describes itself wrongly, or fails when it is tried
// (Module.probe).
func Load(bytes []byte) (*Module, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.cache == "" {
		return loadOnce(bytes, "")
	}
	cache := filepath.Join(loaded.cache, HashOf(bytes))
	m, err := loadOnce(bytes, cache)
	sandbox.Used(cache, maxCached)
	return m, err
}

// maxCached is the number of modules whose compiled code is kept. One in Go has 7 MB.
const maxCached = 16

// LoadCompiled is Load with the code that Code returned in another process, which this one trusts.
// Code that is of no use here, such as for another processor, only costs time.
func LoadCompiled(bytes []byte, code sandbox.Code) (_ *Module, err error) {
	cache, remove, err := code.Import()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	loaded.Lock()
	defer loaded.Unlock()
	return loadOnce(bytes, cache)
}

// loadOnce loads a module unless this process did. Its caller holds the lock.
func loadOnce(bytes []byte, cache string) (*Module, error) {
	hash := HashOf(bytes)
	if r, ok := loaded.all[hash]; ok {
		return r.module, r.err
	}
	slow := func() { loaded.slow(len(bytes)) }
	m, err := load(loaded.ctx, bytes, sandbox.Options{Memory: memoryPages, Start: startFuel, Cache: cache, Slow: slow})
	if cause := context.Cause(loaded.ctx); cause != nil {
		return nil, cause
	}
	if m != nil {
		m.cache = cache
	}
	if loaded.all == nil {
		loaded.all = make(map[string]result)
	}
	loaded.all[hash] = result{m, err}
	return m, err
}

// Code returns the module's compiled code, for LoadCompiled in other processes. There is none if
// this process has no cache.
func (m *Module) Code() (sandbox.Code, bool) {
	if m.cache == "" {
		return sandbox.Code{}, false
	}
	code, err := sandbox.Export(m.cache)
	return code, err == nil
}

// Loaded returns the module with a hash, if Load returned it before in this process.
func Loaded(hash string) (*Module, bool) {
	loaded.Lock()
	defer loaded.Unlock()
	r := loaded.all[hash]
	return r.module, r.module != nil
}

// load compiles a module, reads its description and tries it.
func load(ctx context.Context, bytes []byte, o sandbox.Options) (m *Module, err error) {
	program, err := sandbox.Compile(ctx, bytes, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			m = nil
			_ = program.Close() // the error says more
		}
	}()
	m = &Module{Hash: HashOf(bytes), Bytes: slices.Clone(bytes), program: program}
	in, err := m.acquire(nil)
	if err != nil {
		return nil, err
	}
	if m.Description, err = parseDescription(in.text); err != nil {
		return nil, err
	}
	m.stateSize = len(in.state)
	in.release()
	return m, m.probe()
}

// start returns a new instance. It has run the module's initialization, which a Go program needs
// for its heap.
func (m *Module) start() (in *instance, err error) {
	running, err := m.program.New()
	if err != nil {
		return nil, err
	}
	in = &instance{running: running}
	if err = in.connect(); err != nil {
		running.Close()
		return nil, err
	}
	return in, nil
}

// connect finds the functions and the memory of the interface. Every address and size comes from
// the module, so each is compared with a bound or with the module's memory before it is used. The
// views stay valid: the memory of an instance never moves.
func (in *instance) connect() error {
	about, err := in.running.Function("weft_cc", nil, []api.ValueType{api.ValueTypeI32})
	if err == nil {
		in.event, err = in.running.Function("weft_event", []api.ValueType{api.ValueTypeI32}, nil)
	}
	if err != nil {
		return fmt.Errorf("%w; expected the interface of docs/module-abi.md", err)
	}
	if err := about.Call(callFuel, in.stack[:]); err != nil {
		if _, noMain := in.running.Function("_start", nil, nil); noMain == nil {
			return errors.New("it is a program, which would have to run first; go build needs -buildmode=c-shared")
		}
		return fmt.Errorf("weft_cc: %w", err)
	}
	header, ok := in.running.View(uint32(in.stack[0]), headerSize)
	if !ok {
		return errors.New("weft_cc returns an address outside of its memory")
	}
	field := func(at int) uint32 { return binary.LittleEndian.Uint32(header[at:]) }
	if v := field(headerVersion); v != Version {
		return fmt.Errorf("it has version %d of the interface; expected %d", v, Version)
	}
	stateSize, textSize := field(headerStateSize), field(headerTextSize)
	if stateSize > maxState || textSize > maxText {
		return fmt.Errorf("its state has %d bytes and its description %d; expected at most %d and %d", stateSize,
			textSize, maxState, maxText)
	}
	mail, ok1 := in.running.View(field(headerMail), mailSize)
	state, ok2 := in.running.View(field(headerState), stateSize)
	text, ok3 := in.running.View(field(headerText), textSize)
	if !ok1 || !ok2 || !ok3 {
		return errors.New("its mailbox, state or description is outside of its memory")
	}
	in.mail, in.state, in.text = (*[mailSize]byte)(mail), state, slices.Clone(text)
	in.args = mailSize - mailArgs
	return nil
}

// acquire returns an instance that nobody else uses until release. It prefers the offered one, if
// there is one: the caller used it last, and its memory is still in the processor's cache.
func (m *Module) acquire(offered *instance) (*instance, error) {
	if offered != nil && offered.busy.CompareAndSwap(false, true) {
		return offered, nil
	}
	m.mu.Lock()
	for _, in := range m.all {
		if in.busy.CompareAndSwap(false, true) {
			m.mu.Unlock()
			return in, nil
		}
	}
	m.mu.Unlock()
	in, err := m.start()
	if err != nil {
		return nil, err
	}
	in.busy.Store(true)
	m.mu.Lock()
	m.all = append(m.all, in)
	m.mu.Unlock()
	return in, nil
}

// release makes an instance free.
func (in *instance) release() { in.busy.Store(false) }

// discard closes an instance that failed. It stays busy, so that nobody takes it.
func (m *Module) discard(in *instance) {
	m.mu.Lock()
	m.all = slices.DeleteFunc(m.all, func(other *instance) bool { return other == in })
	m.mu.Unlock()
	in.running.Close()
}
