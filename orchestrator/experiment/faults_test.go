package experiment

import (
	"strings"
	"testing"

	"weft/orchestrator/lab"
)

func TestFaultsOfHostsAreChecked(t *testing.T) {
	for faults, want := range map[string]string{
		"{at: 1us, host: h9, kill: true}":                                   "faults.0.host: no host is named",
		"{at: 1us, host: switch0, kill: true}":                              "faults.0.host: no host is named",
		"{at: 1us, host: h1, kill: true}, {at: 5us, host: h1, pause: 1us}":  "faults.1.at: overlaps",
		"{at: 1us, host: h1, pause: 5us}, {at: 5us, host: h1, pause: 10us}": "faults.1.at: overlaps",
	} {
		text := strings.Replace(haltedLab, "{at: 20us, host: h2, FAULT}", faults, 1)
		labs, err := lab.Parse("lab.yaml", []byte(text), lab.Options{})
		if err == nil {
			_, err = Build(labs[0])
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", faults, err, want)
		}
	}
}
