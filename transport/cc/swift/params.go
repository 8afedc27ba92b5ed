package swift

import (
	"fmt"
	"math"

	"weft/units"
)

// Params are the parameters of Swift. Defaults returns a full set; Check says what is wrong with one.
type Params struct {
	AI     float64 // packets added per round trip, above 0
	Beta   float64 // β, above 0, at most 1
	MaxMDF float64 // the most a window shrinks by at once, above 0, below 1

	BaseTarget units.Time // target delay of a path without hops, above 0
	PerHop     units.Time // ħ, added per link of the path
	FSRange    units.Time // the most that flow scaling adds; 0: no flow scaling
	FSMin      float64    // window in packets at which flow scaling adds FSRange
	FSMax      float64    // window in packets from which on it adds nothing, above FSMin

	MinWindow     units.Bytes // at least 1
	MaxWindow     units.Bytes // 0: the path's bandwidth-delay product, in whole packets
	InitialWindow units.Bytes // 0: the same
	RetxReset     int         // timeouts in a row after which the window is the least, at least 1

	BoltCompat bool // behave as Bolt's simulator does (Sender)
}

// Defaults returns the parameters of Bolt's simulations on 100 Gb/s links.
func Defaults() Params {
	return Params{
		AI: 1, Beta: 0.8, MaxMDF: 0.5,
		BaseTarget: 10 * units.Microsecond, PerHop: units.Microsecond,
		FSRange: 100 * units.Microsecond, FSMin: 0.1, FSMax: 256,
		MinWindow: 15,
		RetxReset: 5, // csg-htsim and OMNeT++; Bolt has no such rule
	}
}

// Check returns an error naming the first parameter that is out of range.
func (p Params) Check() error {
	switch {
	case !(p.AI > 0) || math.IsInf(p.AI, 0):
		return fmt.Errorf("swift: additive increase of %v packets is not positive", p.AI)
	case !(p.Beta > 0 && p.Beta <= 1):
		return fmt.Errorf("swift: beta %v is not above 0 and at most 1", p.Beta)
	case !(p.MaxMDF > 0 && p.MaxMDF < 1):
		return fmt.Errorf("swift: max_mdf %v is not between 0 and 1", p.MaxMDF)
	case p.BaseTarget <= 0 || p.BaseTarget > maxDelay:
		return fmt.Errorf("swift: base target %v is not positive or above %v", p.BaseTarget, maxDelay)
	case p.PerHop < 0 || p.PerHop > maxDelay:
		return fmt.Errorf("swift: target per hop %v is negative or above %v", p.PerHop, maxDelay)
	case p.FSRange < 0 || p.FSRange > maxDelay:
		return fmt.Errorf("swift: flow scaling range %v is negative or above %v", p.FSRange, maxDelay)
	case !(p.FSMin > 0 && p.FSMax > p.FSMin) || math.IsInf(p.FSMax, 0):
		return fmt.Errorf("swift: flow scaling from %v to %v packets: the first must be positive and below the second", p.FSMin, p.FSMax)
	case p.MinWindow < 1:
		return fmt.Errorf("swift: least window %d is not positive", p.MinWindow)
	case p.MaxWindow != 0 && p.MaxWindow < p.MinWindow:
		return fmt.Errorf("swift: greatest window %v is below the least, %v", p.MaxWindow, p.MinWindow)
	case p.InitialWindow < 0:
		return fmt.Errorf("swift: initial window %d is negative", p.InitialWindow)
	case p.RetxReset < 1:
		return fmt.Errorf("swift: reset after %d timeouts", p.RetxReset)
	}
	return nil
}

// maxDelay bounds the parts of the target, so that their sum cannot overflow.
const maxDelay = units.Second
