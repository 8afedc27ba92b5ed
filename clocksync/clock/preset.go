package clock

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Preset is a class of oscillators. The frequency error of each is uniform within ±Skew, and
// wanders.
type Preset struct {
	Skew   float64 // ratio
	Wander float64 // 1/sqrt(s)
}

// presets returns orders of magnitude for plain, temperature-compensated and oven-controlled
// crystal oscillators. Servers in the testbeds of Huygens (NSDI 2018) differ by 5 to 10 ppm, at
// most 30. A wander of 1 ppb/sqrt(s) is the default of linuxptp's test suite.
func presets() map[string]Preset {
	return map[string]Preset{
		"ideal":  {},
		"server": {Skew: 15e-6, Wander: 1e-9},
		"tcxo":   {Skew: 2e-6, Wander: 0.1e-9},
		"ocxo":   {Skew: 5e-9, Wander: 0.005e-9},
		"bad":    {Skew: 100e-6, Wander: 100e-9},
	}
}

// Presets returns the names of the presets.
func Presets() []string { return slices.Sorted(maps.Keys(presets())) }

// PresetOf returns the preset of the given name, or an error if there is none.
func PresetOf(name string) (Preset, error) {
	p, ok := presets()[name]
	if !ok {
		return p, fmt.Errorf("clock: no preset %q; there are %s", name, strings.Join(Presets(), ", "))
	}
	return p, nil
}
