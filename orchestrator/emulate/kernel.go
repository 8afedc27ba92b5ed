package emulate

import (
	"runtime"
	"time"

	"weft/orchestrator/uml"
)

// Under User Mode Linux a system call takes 20 to 40 us and starting a process half a second (ADR
// 115), a hundred times as long as on the machine's kernel, and there is one processor.
const (
	umlLight   = 60.0   // packets per second
	umlCertain = 1000.0 // packets per second that it carries at most, alone on a machine
	umlHosts   = 4
	umlSilence = 30 * time.Second
	umlRescue  = 10 * time.Second
)

// light returns the load of the first calibration run, in data packets per second, which any
// current machine carries.
func light() float64 {
	if uml.Inside() != "" {
		return umlLight
	}
	return benchLight * float64(runtime.NumCPU())
}

// certain returns the real load up to which a requested dilation needs no measurement. Under User
// Mode Linux other programs on the machine dominate any measurement, so none is made, and the
// verdict tells.
func certain() float64 {
	if uml.Inside() != "" {
		return umlCertain
	}
	return light()
}

// calibrationHosts returns the number of hosts of the calibration: that of typical labs, or fewer
// where starting them takes long.
func calibrationHosts() int {
	if uml.Inside() != "" {
		return umlHosts
	}
	return benchHosts
}

// patience returns how long a process may be silent.
func patience() time.Duration {
	if uml.Inside() != "" {
		return umlSilence
	}
	return silence
}

// rescue returns how long to wait for results after a failure or an interruption.
func rescue() time.Duration {
	if uml.Inside() != "" {
		return umlRescue
	}
	return rescueTime
}
