package lab

import (
	"testing"

	"weft/units"
)

// Without steps, no change of a clock is large enough for one.
func TestHuygensThatNeverSteps(t *testing.T) {
	l := mustParse(t, star+"clocks: {sync: huygens, huygens: {step: off}}\n", Options{})[0]
	if got := l.Clocks.Huygens.StepLimit; got != units.Never {
		t.Errorf("step: off is a limit of %v", got)
	}
}
