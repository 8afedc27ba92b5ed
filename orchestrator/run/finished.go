package run

import (
	"slices"
	"strings"

	"weft/orchestrator/lab"
	"weft/orchestrator/uml"
	"weft/results/record"
	"weft/results/store"
)

// Found is what Finished finds among earlier runs.
type Found struct {
	Summary *record.Summary // of the run to reuse; nil: there is none
	// Refused reports that there is none, and one that strict does not accept.
	Refused bool
	// Damaged names runs that could have been reused and whose files are not as the run left them,
	// with the reason, if there is none to reuse.
	Damaged []string
}

// Finished looks for one of earlier runs that succeeded with this very program and the settings of
// l, in the given engine (auto: in any), and whose files are as it left them: of those that strict
// accepts (record.Summary.Accepted) the one with the best fidelity, and the first of equals. It
// reads all files of the runs that it considers.
func Finished(l *lab.Lab, engine, strict string, earlier []*record.Manifest) (f Found) {
	for _, m := range earlier {
		if !sameRun(m, l, engine) {
			continue
		}
		s, err := store.ReadSummary(m.Run)
		if err == nil && s.Status != record.OK {
			continue
		}
		switch damage := store.DamageInside(m.Run, m); {
		case damage != "":
			f.Damaged = append(f.Damaged, m.Run+": files "+damage)
			continue
		case err != nil:
			f.Damaged = append(f.Damaged, err.Error())
			continue
		case !s.Accepted(strict):
			f.Refused = true
			continue
		case f.Summary == nil || f.Summary.Outcome().WorseFidelity(s.Outcome()):
			s.Run, s.Point = m.Run, l.Point // the run may have been made alone, or in a sweep of other settings
			f.Summary = s
		}
		if !f.Summary.Outcome().Doubtful() {
			break
		}
	}
	if f.Summary != nil {
		return Found{Summary: f.Summary}
	}
	return f
}

// sameRun reports whether a run that succeeded had the same program, engine, kernel, settings and
// content of the files that the lab names, those of programs of hosts too, as a run of l would
// have, and is of no other point. The dilation of a run that repeated another may differ.
func sameRun(m *record.Manifest, l *lab.Lab, engine string) bool {
	if m.Status != record.OK || m.Program == "" || m.Program != store.Program() ||
		engine != "auto" && m.Engine != engine || len(m.Settings) != len(l.Sources) {
		return false
	}
	// Two points may come to the same settings, as an algorithm and auto do. Each has a run of its
	// own.
	if store.OtherPoint(m.Point, l.Point) {
		return false
	}
	if a, b := m.Module, moduleOf(l); (a == nil) != (b == nil) || a != nil && *a != *b {
		return false
	}
	if !slices.EqualFunc(m.Traces, l.Traces, func(a record.Trace, b lab.Trace) bool {
		return a.File == b.File && a.SHA256 == b.Sum
	}) {
		return false
	}
	if m.Engine == "emu" && strings.HasPrefix(m.Machine.Kernel, "uml ") != (uml.Inside() != "") {
		return false
	}
	if dp := l.Engine.Datapath; m.Engine == "emu" && dp != lab.DatapathAuto && m.Datapath != dp {
		return false // Weft chose another for an earlier run
	}
	for i, s := range l.Sources {
		if s.Path == "engine.dilation" && m.Retry != nil && m.Retry.Counts {
			continue
		}
		if m.Settings[i].Path != s.Path || m.Settings[i].Value != s.Value {
			return false
		}
	}
	return m.Engine != "emu" || slices.EqualFunc(m.ProgramFiles, programFiles(l), func(a, b record.ProgramFile) bool {
		return a == b && a.SHA256 != "" // what this machine does not have may be another already
	})
}
