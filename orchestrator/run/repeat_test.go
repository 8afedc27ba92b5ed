package run

import (
	"slices"
	"testing"

	"weft/orchestrator/lab"
)

// Only a dilation that Weft chose to repeat a run is one that nobody asked for.
func TestDilationOfARepetition(t *testing.T) {
	for want, o := range map[bool]lab.Options{
		true:  {Retry: "5800"},
		false: {Engine: lab.EngineOptions{Dilation: "5800"}, Set: []string{"seed=2"}},
	} {
		labs, err := lab.Parse("lab.yaml", []byte(capturedLab), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(labs[0].Sources, isRepeat); got != want || labs[0].Engine.Dilation != 5800 {
			t.Errorf("%+v: a repetition: %t, want %t", o, got, want)
		}
	}
}
