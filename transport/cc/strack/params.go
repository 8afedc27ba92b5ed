package strack

import (
	"fmt"
	"math"

	"weft/units"
)

// MaxPaths is the most paths a connection can spray over (Algorithm 3, max_paths).
const MaxPaths = 256

// Params are the parameters of STrack. Defaults returns a full set; Check says what is wrong with one.
type Params struct {
	Target  units.Time // target_Qdelay; 0: the network's base RTT
	High    float64    // target_Qhigh in targets, at least 1 (Table 1: 3; the text: "twice the target delay")
	EWMA    float64    // weight of the newest delay in the average, above 0, at most 1
	Alpha   float64    // packets per window acknowledged without delay, before scaling, at least 0
	Beta    float64    // packets per window acknowledged beyond Qhigh without a mark, before scaling, at least 0
	Eta     float64    // packets per base RTT for fairness, before scaling, at least 0
	Gamma   float64    // γ of the multiplicative decrease, above 0, at most 1
	MaxMDF  float64    // the most a window shrinks by in one such decrease, above 0, below 1 (Algorithm 4, line 15: a half)
	MaxCWND float64    // greatest and first window, in bandwidth-delay products of the network, above 0

	MDRequiresECN bool // a window shrinks on marked packets only (section 3, scenario 4), not as Algorithm 4 is printed

	Paths int // paths to spray over, 1 to MaxPaths; a power of two where they are chosen obliviously
}

// Defaults returns the recommended values of Table 1.
func Defaults() Params {
	return Params{
		High: 3, EWMA: 0.125, Alpha: 4, Beta: 5, Eta: 0.15, Gamma: 0.8, MaxMDF: 0.5, MaxCWND: 1, Paths: MaxPaths,
	}
}

// Check returns an error naming the first parameter that is out of range.
func (p Params) Check() error {
	switch {
	case p.Target < 0 || p.Target > units.Second:
		return fmt.Errorf("strack: target delay %d ps is not between 0 and 1 s", p.Target)
	case !(p.High >= 1 && p.High <= 1000):
		return fmt.Errorf("strack: high target of %v targets is not between 1 and 1000", p.High)
	case !(p.EWMA > 0 && p.EWMA <= 1):
		return fmt.Errorf("strack: ewma %v is not above 0 and at most 1", p.EWMA)
	case !gain(p.Alpha), !gain(p.Beta), !gain(p.Eta):
		return fmt.Errorf("strack: increases alpha %v, beta %v and eta %v must be finite and not negative", p.Alpha, p.Beta, p.Eta)
	case !(p.Gamma > 0 && p.Gamma <= 1):
		return fmt.Errorf("strack: gamma %v is not above 0 and at most 1", p.Gamma)
	case !(p.MaxMDF > 0 && p.MaxMDF < 1):
		return fmt.Errorf("strack: max_mdf %v is not between 0 and 1", p.MaxMDF)
	case !(p.MaxCWND > 0 && p.MaxCWND <= 1000):
		return fmt.Errorf("strack: greatest window of %v bandwidth-delay products is not above 0 and at most 1000", p.MaxCWND)
	case p.Paths < 1 || p.Paths > MaxPaths:
		return fmt.Errorf("strack: %d paths, not 1 to %d", p.Paths, MaxPaths)
	}
	return nil
}

func gain(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }

// SourcePorts is how many source ports a connection sends from: one for each path.
func (p Params) SourcePorts() int { return p.Paths }
