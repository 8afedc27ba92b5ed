package transport

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"weft/internal/splitmix"
	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/dcqcn"
	"weft/transport/cc/strack"
	"weft/transport/cc/wasm"
	"weft/transport/path"
	"weft/transport/wire"
	"weft/units"
)

// Wasm is the section of a congestion control that is a module: which one, its parameters, and the
// endpoint around it.
type Wasm struct {
	Params   wasm.Params
	File     string // name of the module's file, relative to the lab file
	Recovery string // GoBackN, SelectiveRepeat
	Spread   string // spreadInTurn, spreadByMarks
	Selective
	Timeouts

	read   func(string) ([]byte, error)
	module *wasm.Module  // nil: there is none, and why says why
	values *wasm.Section // nil without a module
	why    error
}

// Values of Wasm.Spread.
const (
	spreadInTurn  = "in-turn"
	spreadByMarks = "by-marks"
)

// ReadWith implements params.Reading.
func (s *Wasm) ReadWith(read func(string) ([]byte, error)) { s.read = read }

// Prescan implements params.Prescanner: the module that is named determines the keys of params, and
// defaults.
func (s *Wasm) Prescan(written func(path string) (text string, ok bool)) {
	name, ok := written("module")
	if !ok || s.read == nil {
		return
	}
	if _, err := params.File(new(string), "").Set(name, false); err != nil {
		return // reported where the key is read
	}
	bytes, err := s.read(name)
	if err == nil {
		s.module, err = wasm.Load(bytes)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no %q; build it first: GOOS=wasip1 GOARCH=wasm go build -trimpath "+
			"-buildmode=c-shared -o %[1]q", name)
	}
	if s.why = err; err == nil {
		s.Params.Module, s.values = s.module.Hash, s.module.Section()
	}
}

// Keys implements params.Section.
func (s *Wasm) Keys() []params.Key {
	about := func(is func(wasm.Description) bool) func() (text, source string) {
		return func() (string, string) {
			if s.module == nil {
				return "", ""
			}
			return map[bool]string{true: "true", false: "false"}[is(s.module.Description)], "module " + s.module.Name
		}
	}
	many := func() (bool, string) {
		return s.Params.Paths > 1, "there is one path; leave it out, or expected paths above 1"
	}
	known := func() (bool, string) { return s.module != nil, "" }
	selective := s.Selective.Keys()
	for i := range selective {
		selective[i].About = "As transport.strack." + selective[i].Name + "."
		selective[i] = selective[i].Only(func() (bool, string) {
			return s.Recovery == SelectiveRepeat,
				"it is a key of selective repeat; leave it out, or expected recovery: " + SelectiveRepeat
		})
	}
	return slices.Concat([]params.Key{
		params.New("module", params.File(&s.File, "aimd.wasm"),
			"Its file."),
		params.Sub("params", func() params.Section { return s.values }, "As it declares.").
			Unlisted().Only(known),
		params.New("window", params.Amount(&s.Params.Window).Or("module", params.Size{}),
			"Maximum window; module: its own.").Default("module", "ours"),
		params.New("recovery", params.Word(&s.Recovery, GoBackN, SelectiveRepeat), "As transport.pc4.recovery.").
			Following(func() (text, source string) {
				if s.module != nil && s.module.Selective {
					return SelectiveRepeat, "module " + s.module.Name
				}
				return "", ""
			}).Default(GoBackN, "RoCEv2"),
		params.New("paths", params.Integer(&s.Params.Paths, 1, 256), "Source ports.").
			Default("1", "ours: as of swift"),
		params.New("spread", params.Word(&s.Spread, spreadInTurn, spreadByMarks),
			"Choice of paths.").Default(spreadInTurn, "ours").Only(many),
		params.New("ecn", params.Flag(&s.Params.ECN), "ECN-capable.").
			Following(about(func(d wasm.Description) bool { return d.ECN })).Default("false", "ours"),
		params.New("telemetry", params.Flag(&s.Params.INT), "INT.").
			Following(about(func(d wasm.Description) bool { return d.INT })).Default("false", "ours"),
		params.New("cnp_interval", params.Time(&s.Params.Interval, 0, 10*units.Second),
			"As transport.roce.cnp_interval.").
			Default("4us", "ours: that of NVIDIA's NICs").Only(func() (bool, string) {
			if s.module == nil {
				return false, ""
			}
			return s.module.CNP, "the module " + s.module.Name +
				" handles no congestion notification packets; leave it out"
		}),
	}, selective, s.Timeouts.Keys())
}

// Rules implements params.Ruled. It reports a module that cannot be used, and choices of the
// endpoint that do not go together.
func (s *Wasm) Rules(r params.Rules) {
	if s.why != nil && r.Good("module") {
		r.Refuse("module", "%v", s.why)
	}
	if n := s.Params.Paths; n > 1 && s.Recovery == GoBackN {
		r.Refuse("paths", "packets of several paths overtake each other, which go-back-n takes for losses; "+
			"expected 1, or recovery: %s", SelectiveRepeat)
	}
	if n := s.Params.Paths; s.Spread == spreadInTurn && n&(n-1) != 0 {
		r.Refuse("paths", "%d is not a power of two, which spread: %s needs", n, spreadInTurn)
	}
}

// Control implements Section.
func (s *Wasm) Control() cc.Params {
	p := s.Params
	p.Values, p.Adaptive = s.values.Values(), s.Spread == spreadByMarks
	p.CNP = s.module != nil && s.module.CNP
	return p
}

// Set implements Section.
func (s *Wasm) Set(c *Spec) {
	c.CC, c.Recovery, c.RTOMin, c.Tries = s.Control(), s.Recovery, s.RTOMin, s.Tries
	if s.Recovery == SelectiveRepeat {
		c.Selective = s.Selective
	}
}

// ModuleOf returns the module of a transport that is one, and the name of its file in the lab; nil:
// the transport is no module.
func ModuleOf(s Section) (m *wasm.Module, file string) {
	if w, ok := s.(*Wasm); ok {
		return w.module, w.File
	}
	return nil, ""
}

// wasmScheme is a module and what its lab says about the endpoint.
func wasmScheme(s *Spec, p wasm.Params) scheme {
	id, paths := s.ID, p.SourcePorts()
	sch := scheme{
		controller: func(l cc.Link) cc.Controller { return wasm.NewSender(p, l) },
		receiver:   meter,
		chooser:    onePath,
		ect:        p.ECN, telemetry: p.INT, either: true, paths: paths,
		windowed: paths > 1,
		span: func(l cc.Link) uint64 {
			if w := p.Limit(l); w < maxSpan*l.Packet/spanWindows {
				return spanWindows*uint64(w) + wire.SackBits
			}
			return maxSpan
		},
	}
	if p.CNP {
		sch.receiver = func(units.Bandwidth) cc.Receiver {
			return dcqcn.NewNotifier(dcqcn.Params{CNPInterval: p.Interval})
		}
	}
	switch {
	case paths > 1 && p.Adaptive:
		like := params.Defaults[strack.Params]()
		like.Paths = paths
		sch.chooser = func(l cc.Link, _ uint64, window units.Bytes) path.Chooser {
			return path.NewSTrack(adaptive(like, l), l.Packet, window)
		}
	case paths > 1:
		sch.chooser = func(_ cc.Link, seed uint64, _ units.Bytes) path.Chooser {
			return path.NewSpray(paths, seed^uint64(id+1)*splitmix.Gamma)
		}
	}
	return sch
}
