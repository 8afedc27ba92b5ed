package emulate

import (
	"runtime"
	"time"

	"weft/orchestrator/uml"
)

// Under User Mode Linux a system call takes 20 to 40 us and starting a process half a second (ADR 115), a hundred times what
// they take on the machine's kernel, and there is one processor.
const (
	umlLight   = 60.0   // packets per second
	umlCertain = 1000.0 // likewise, that one alone on a machine carries at most
	umlHosts   = 4
	umlSilence = 30 * time.Second
	umlRescue  = 10 * time.Second
)

// light is the load of the first calibration run, in data packets per second: any machine of today carries them.
func light() float64 {
	if uml.Inside() != "" {
		return umlLight
	}
	return benchLight * float64(runtime.NumCPU())
}

// certain is the load at which a dilation that was asked for is taken. Under User Mode Linux what is measured depends on
// whatever else the machine does more than on anything, so nothing is, and the verdict tells.
func certain() float64 {
	if uml.Inside() != "" {
		return umlCertain
	}
	return light()
}

// calibrationHosts is how many hosts the calibration has: as many as the labs that it is for, where starting them takes no time.
func calibrationHosts() int {
	if uml.Inside() != "" {
		return umlHosts
	}
	return benchHosts
}

// patience is for how long a process may say nothing.
func patience() time.Duration {
	if uml.Inside() != "" {
		return umlSilence
	}
	return silence
}

// rescue is for how long results may come after a failure or an interruption.
func rescue() time.Duration {
	if uml.Inside() != "" {
		return umlRescue
	}
	return rescueTime
}
