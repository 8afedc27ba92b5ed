package experiment

import (
	"strings"
	"testing"

	"weft/orchestrator/lab"
)

// A fault that changes nothing is warned of, unless a sweep varies it; one that changes something
// is not.
func TestFaultsThatChangeNothing(t *testing.T) {
	const sw = "link: h1-switch0, for: 1us"
	for fault, want := range map[string]string{
		sw + ", rate: 100Gbps": "has these values", sw + ", rate: 50Gbps": "", sw + ", delay: 1us": "has these values",
		sw + ", delay: 2us": "", sw + ", loss: 0": "has these values", sw + ", loss: 0, rate: 50Gbps": "",
		"link: h1-switch0, down: 1us": "", "host: h1, pause: 1us": "", "corrupt: h1": "",
		"clock: h1, step: 0s": "by 0", "clock: h1, step: 1us": "", "clock: h1, skew: 0ppm": "by 0", "clock: h1, skew: 1ppm": "",
		"clock: h0, lies: 0s": "before it", "clock: h0, lies: 1us": "", "clock: h3, lies: 1us": "no host follows",
		"clock: h0, lies: 1us}, {at: 2us, clock: h0, lies: 0s": "", "clock: h1, sync: off": "",
	} {
		text := "weft: 1\nname: x\ntopology: {kind: star, hosts: 4, link: {rate: 100Gbps, delay: 1us}}\nclocks: {sync: ptp, " +
			"ptp: {backups: 1}}\nworkload: [{collective: permute, size: 1MB}]\nfaults: [{at: 1us, " + fault + "}]\n"
		labs, err := lab.Parse("lab.yaml", []byte(text), lab.Options{})
		if err != nil {
			t.Fatal(fault, err)
		}
		found := new(lastNetwork).idleFaults(labs[0])
		if want == "" && len(found) > 0 || want != "" && (len(found) != 1 || found[0].Path != "faults.0" ||
			!strings.Contains(found[0].Message, "changes nothing: ") || !strings.Contains(found[0].Message, want)) {
			t.Errorf("%s: %+v, want %q", fault, found, want)
		}
		labs[0].Point = map[string]any{"faults.0.rate": "100Gbps"}
		if found := new(lastNetwork).idleFaults(labs[0]); len(found) > 0 {
			t.Errorf("%s, swept: %+v", fault, found)
		}
	}
	labs, err := lab.Parse("lab.yaml", []byte("weft: 1\nname: x\ntopology: {kind: star, hosts: 4}\nclocks: {sync: none, for: 1ms}\n"+
		"faults: [{at: 1us, clock: h2, sync: off}]\n"), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Build(labs[0]); err == nil || !strings.Contains(err.Error(), "faults.0.sync: hosts do not exchange") {
		t.Errorf("sync: off without a protocol: %v", err)
	}
}
