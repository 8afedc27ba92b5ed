package record

import "strings"

// Manifest is manifest.json: what was run, where and by which program. It and the summary are the
// only files of a run with wall times.
type Manifest struct {
	Format       int            `json:"format"` // version of the run directory
	Run          string         `json:"run"`
	Lab          string         `json:"lab"`
	Point        map[string]any `json:"point,omitempty"`
	Set          []string       `json:"set,omitempty"`           // settings of the command line, as path=value
	Command      []string       `json:"command,omitempty"`       // flags, -- and a program that replaced the workload
	Settings     []Setting      `json:"settings"`                // the resolved lab, with defaults
	Traces       []Trace        `json:"traces,omitempty"`        // trace files that the lab names
	ProgramFiles []ProgramFile  `json:"program_files,omitempty"` // of an emulation
	Original     *Original      `json:"original,omitempty"`      // the directory lacks files that the lab names
	Module       *Module        `json:"module,omitempty"`        // the congestion control, if it is a module
	Sends        string         `json:"transport,omitempty"`     // as in the summary; absent in older runs
	Carried      string         `json:"carried,omitempty"`       // as in the summary
	Control      string         `json:"control,omitempty"`       // congestion control, if of another name
	Seed         uint64         `json:"seed"`
	Version      string         `json:"version"`           // of weft
	Program      string         `json:"program,omitempty"` // first half of the SHA-256 that identifies the binary
	Go           string         `json:"go"`                // version of the compiler
	Engine       string         `json:"engine"`
	EngineWhy    string         `json:"engine_why"` // why this engine was chosen
	Datapath     string         `json:"datapath,omitempty"`
	Runtime      string         `json:"runtime,omitempty"`
	Dilation     float64        `json:"dilation"`
	Faults       []Fault        `json:"faults,omitempty"` // scheduled by the lab, in its order
	Machine      Machine        `json:"machine"`
	On           string         `json:"on,omitempty"`       // --on of weft run: parts of the lab were on other machines
	Machines     []string       `json:"machines,omitempty"` // which ones, by part
	Process      *Process       `json:"process,omitempty"`
	Started      string         `json:"started"` // RFC 3339, UTC
	Ended        string         `json:"ended,omitempty"`
	Series       *Series        `json:"series,omitempty"`
	Retry        *Retry         `json:"retry,omitempty"`
	Status       string         `json:"status"`
	Error        string         `json:"error,omitempty"`
	Fidelity     *Fidelity      `json:"fidelity,omitempty"` // of an emulation that ended
	Files        []File         `json:"files,omitempty"`    // of a run that ended
}

// Programs is the Transport of a run whose packets are all sent by programs, and what carried the
// packets of programs if nobody saw a TCP connection of theirs. Otherwise Carried is tcp with the
// congestion controls that the connections had: "tcp bbr, cubic".
const Programs = "programs"

// ClocksAlone is the Transport of a run without workload and background traffic: all its packets
// are those of clock synchronization.
const ClocksAlone = "clocks"

// Transport returns what sends the packets of the run, as Summary.Transport has it of a run that
// ended: the kind of its transport, Programs if the workload has nothing else and there is no
// background traffic, or ClocksAlone. It is empty if the settings have neither.
func (m *Manifest) Transport() string {
	if m.Sends != "" {
		return m.Sends
	}
	kind, programs, others := "", map[string]bool{}, false
	for _, s := range m.Settings {
		switch {
		case s.Path == "transport.kind":
			kind = s.Value
		case s.Path == "background.load":
			others = others || s.Value != "0"
		case strings.HasPrefix(s.Path, "workload."):
			item, key, _ := strings.Cut(strings.TrimPrefix(s.Path, "workload."), ".")
			programs[item] = programs[item] || key == "program" || strings.HasPrefix(key, "program.")
		}
	}
	for _, is := range programs {
		others = others || !is
	}
	if len(programs) > 0 && !others {
		return Programs
	}
	return kind
}

// Sender names what sends the packets of a run, from the name of its Transport and from Carried:
// one or both.
func Sender(transport, carried string) string {
	switch {
	case carried == "":
		return transport
	case transport == Programs:
		return carried
	}
	return transport + " and " + carried
}

// Series identifies the runs of one lab by the same command line.
type Series struct {
	ID     string `json:"id"`              // unique for each command line
	Number int    `json:"number"`          // of this run in the series, from 1
	Of     int    `json:"of"`              // number of runs
	Sweep  string `json:"sweep,omitempty"` // name of the directory, beside the run's, about all of them
}

// Fault is a scheduled change of a link, host or clock.
type Fault struct {
	Path    string  `json:"path"`           // of its settings: faults.0
	Link    string  `json:"link,omitempty"` // name in the topology
	Host    string  `json:"host,omitempty"`
	What    string  `json:"what"`               // down, killed, paused, loss 5%, ...
	FromUS  float64 `json:"from_us"`            // start
	UntilUS float64 `json:"until_us,omitempty"` // end; absent if Once, or if it lasts to the end of the run
	Once    bool    `json:"once,omitempty"`     // it is an instant without a duration

	// Spared means that it changed nothing: no data arrived from its instant on of which a byte
	// could be corrupted.
	Spared bool `json:"spared,omitempty"`

	// RerouteUS is the delay after a link goes down or up until all switches know; absent if they
	// never do.
	RerouteUS float64 `json:"reroute_us,omitempty"`

	// Cut is the number of packets that were lost on the link as it went down, or later because it
	// was down.
	Cut int64 `json:"cut,omitempty"`
}

// LinkDown is Fault.What of a link that carries nothing.
const LinkDown = "down"

// Began reports whether the fault started in a run that ended at endUS, in microseconds of lab
// time.
func (f Fault) Began(endUS float64) bool { return f.FromUS <= endUS && !f.Spared }

// File is an entry of the manifest for a file of the run.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Sum   uint32 `json:"crc32c"`
}

// Setting is a value of the resolved lab and its source.
type Setting struct {
	Path  string `json:"path"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// Module is a congestion control that is a WebAssembly module.
type Module struct {
	File   string `json:"file"` // relative to the directory of the lab file
	Name   string `json:"name"` // as the module calls itself
	SHA256 string `json:"sha256"`
}

// Short returns the beginning of the hash, which tells builds apart in a table.
func (m *Module) Short() string { return short(m.SHA256) }

// short returns the beginning of a hash, for people.
func short(hash string) string { return hash[:min(len(hash), 8)] }

// Trace is a trace file or folder that the lab names.
type Trace struct {
	File   string `json:"file"`             // relative to the directory of the lab file
	SHA256 string `json:"sha256,omitempty"` // of names and content of all that was read
}

// ProgramFile is a file of a program that hosts of an emulation run: the program itself if the lab
// names it by its absolute path, or one of its files.
type ProgramFile struct {
	Path   string `json:"path"`             // the setting that names it: workload.0.files.1
	File   string `json:"file"`             // as the lab names it
	SHA256 string `json:"sha256,omitempty"` // of its content; absent: this machine does not have it
}

// Short returns the beginning of the hash, "" if it is not known.
func (f *ProgramFile) Short() string { return short(f.SHA256) }

// Original is the lab to repeat a run from if its directory lacks files that the lab names.
type Original struct {
	Lab string `json:"lab"` // as the command line named it
	Why string `json:"why"` // why the files are not in the directory
}

// Machine describes the computer of the run.
type Machine struct {
	Host   string `json:"host"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel"` // release; prefixed by "uml " for User Mode Linux
	CPUs   int    `json:"cpus"`
}

// Process identifies the process of a run among all that have or had its PID.
type Process struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started_ticks"` // clock ticks since boot
	Boot    string `json:"boot"`          // boot ID of the machine
	Space   string `json:"pid_namespace"` // the namespace of PID
}
