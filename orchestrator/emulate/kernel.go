package emulate

import (
	"runtime"
	"time"

	"weft/orchestrator/uml"
)

// Under User Mode Linux a system call takes 20 to 40 us and starting a process half a second (ADR 115), a hundred times what
// they take on the machine's kernel, and there is one processor.
const (
	umlLight   = 60.0 // packets per second
	umlHosts   = 4
	umlSilence = 30 * time.Second
)

// light is the load of the first calibration run, in data packets per second: any machine of today carries them.
func light() float64 {
	if uml.Inside() != "" {
		return umlLight
	}
	return benchLight * float64(runtime.NumCPU())
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
