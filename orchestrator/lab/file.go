package lab

import (
	"fmt"
	"strconv"

	"weft/fabric/queues"
	"weft/internal/clip"
	"weft/orchestrator/topology"
	"weft/params"
)

// file is a lab file as a whole: the keys of its first level.
type file struct{ Lab }

// Keys implements params.Section. decoder.lab reads the keys that are OnceKnown, because they
// follow from other sections.
func (f *file) Keys() []params.Key {
	section := func(name string, open params.Section, about string) params.Key {
		return params.Sub(name, func() params.Section { return open }, about).OnceKnown()
	}
	version := params.Custom(new(string), func(text string) (string, error) { return text, nil },
		func(text string) string { return text },
		"weft: "+formatVersion+", the version of the format",
		func() params.Form { return params.Form{Number: "integer", Least: formatVersion, Most: formatVersion} })
	expectation := func(text *string) params.Key {
		return params.One(params.Text(text, "an expectation such as verified == true"))
	}
	sweep := params.Sub("sweep", func() params.Section { return nil },
		"Paths and values; every combination is a run. Comma-separated paths change together; "+
			"null leaves one as it is. A transport's parameters are swept only in its own runs.").OnceKnown()
	return []params.Key{
		params.New("weft", version, "Format version.").OnceKnown(),
		params.New("name", params.Name(&f.Name), "Names the results folder and labels the nodes."),
		params.New("about", params.Text(&f.About, "a sentence about the lab"), "What the lab shows.").OrNone(),
		params.New("seed", seed(&f.Seed), "Every random choice derives from it.").Default("1", "ours"),
		section("topology", new(topology.Spec), "Hosts, switches and links."),
		section("queues", new(queues.Queues), "Egress queues of switches."),
		section("clocks", new(Clocks), "Clock errors and synchronization."),
		section("background", new(Background),
			"Unmeasured bursts between random hosts, without congestion control; simulator only."),
		section("transport", new(Transport), "What carries the messages."),
		new(workload).key().OnceKnown(),
		new(faults).key().OnceKnown(),
		section("measure", new(Measure), "What is recorded besides flows."),
		params.List("expect", params.ItemsOf(new([]string), maxExpect, expectation),
			"Checked after the run; a miss is exit code 3. A condition after when selects points of a sweep; "+
				"rtt.mean[transport=pc4] compares them, by keys and values, or * for all values.").
			OnceKnown(),
		params.List("report", chartsOf(&f.Report),
			"Charts and numbers that the lab is about: its pages begin with them.").OrNone(),
		sweep,
		section("engine", new(Engine), "How the lab runs; flags override it."),
	}
}

// seed is the number that all random choices follow from.
func seed(to *uint64) params.Value {
	return params.Custom(to, func(text string) (uint64, error) {
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil || !params.Digits(text) {
			return 0, fmt.Errorf("%q is not a seed; expected a whole number from 0 to %d", clip.Text(text),
				uint64(1<<64-1))
		}
		return v, nil
	}, func(v uint64) string { return strconv.FormatUint(v, 10) }, "a whole number such as 1",
		func() params.Form { return params.Form{Number: "integer", Least: "0"} }).
		Bare(fmt.Sprintf("a seed; expected a whole number from 0 to %d", uint64(1<<64-1)))
}
