package emulate

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"weft/host"
	"weft/internal/control"
	"weft/internal/stalls"
	"weft/nodeimg/agent"
	"weft/realtime"
	"weft/results/frames"
	"weft/results/stats"
	"weft/transport"
)

// endingRun returns a run that is about to collect the results of three nodes, and what each of
// them, and at last the fabric, will say.
func endingRun(t *testing.T) (r *run, said func(peer int, kind string, body any)) {
	r = &run{session: &session{x: new(Experiment), cluster: namedCluster{}, ends: endsOf(namedCluster{}),
		crew: &crew{conns: make([]*control.Conn, 3), silences: newSilences(4)}}, nodes: make([]nodeState, 3), outcome: newOutcome(3),
		news: make(chan news, 16)}
	*r.x = allToAll(3, 1, 2, 1)
	conn := func() *control.Conn {
		ours, theirs, err := control.Pair()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ours.Close()
			theirs.Close()
		})
		return ours
	}
	for i := range r.crew.conns {
		r.crew.conns[i] = conn()
	}
	r.carrier = &carrier{name: "fabric", who: "the fabric process", conn: conn()}
	return r, func(peer int, kind string, body any) {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		r.news <- news{peer: peer, message: control.Message{Kind: kind, Body: text}}
	}
}

// noResults are the results of a host without a part in any collective.
func noResults() *agent.Results {
	return &agent.Results{RTT: stats.NewDist(), OneWay: stats.NewDist(), Timer: stats.NewDist(),
		Reaction: stats.NewDist(), Stalls: new(stalls.Log)}
}

// A run fails if a host's results are lost at its end, and the error names the hosts and the
// reason.
func TestLostResultsFailTheRun(t *testing.T) {
	r, said := endingRun(t)
	said(0, agent.KindResults, noResults())
	said(1, control.KindError, "too large")
	r.news <- news{peer: 2, err: errors.New("EOF")}
	said(fabricPeer, realtime.KindReport, realtime.Report{QueueDelay: stats.NewDist()})
	err := r.collect(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "h1 sent no results: too large") ||
		!strings.Contains(err.Error(), "h2 sent no results: EOF") {
		t.Errorf("collecting returned %v", err)
	}
	if len(r.outcome.Warnings) > 0 {
		t.Errorf("warned of what is the error: %q", r.outcome.Warnings)
	}
}

// After a failure, missing results are warnings: the run has its error.
func TestLostResultsOfAFailedRunAreWarnings(t *testing.T) {
	r, said := endingRun(t)
	said(0, agent.KindResults, noResults())
	for i := 1; i <= 2; i++ {
		r.news <- news{peer: i, err: errors.New("EOF")}
	}
	said(fabricPeer, realtime.KindReport, realtime.Report{QueueDelay: stats.NewDist()})
	if err := r.collect(t.Context(), errors.New("h1 died")); err != nil {
		t.Errorf("collecting returned %v", err)
	}
	if w := r.outcome.Warnings; len(w) != 1 || w[0] != "h1, h2 sent no results: EOF" {
		t.Errorf("warned %q", w)
	}
}

// A node cannot fill the orchestrator's memory with results.
func TestResultsHaveALimit(t *testing.T) {
	r, _ := endingRun(t)
	r.nodes[1].size = agent.MaxResults
	text, err := json.Marshal(agent.Rows{Steps: []agent.Step{{}}})
	if err != nil {
		t.Fatal(err)
	}
	err = r.take(news{peer: 1, message: control.Message{Kind: agent.KindRows, Body: text}})
	if err == nil || !strings.Contains(err.Error(), "h1: its results have more than") || r.nodes[1].lost == nil {
		t.Errorf("got %v", err)
	}
}

// A node cannot report connections of other hosts, of the future or twice, nor states of ports.
func TestReportedConnectionsAreChecked(t *testing.T) {
	own := []frames.Conn{{Conn: 1, Arrived: 5}}
	for want, all := range map[string][]frames.Frame{
		"":                         {{At: 1, Conns: own}, {At: 2, Conns: []frames.Conn{{Conn: 1, Window: 7}}}},
		"after":                    {{At: 2, Conns: own}, {At: 2, Conns: own}},
		"were not expected":        {{At: 1 << 62, Conns: own}},
		"connection 2":             {{At: 1, Conns: []frames.Conn{{Conn: 2}}}},
		"connection 1 with -1":     {{At: 1, Conns: []frames.Conn{{Conn: 1, Arrived: -1}}}},
		"window of -1":             {{At: 1, Conns: []frames.Conn{{Conn: 1, Window: -1}}}},
		"at 1ps, after 0s, were n": {{At: 1, Ports: make([]frames.Port, 1)}},
	} {
		n := nodeState{}
		err := n.checkConns(&host.Plan{Conns: []transport.Spec{{ID: 1}}}, 10, all)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v; expected %q", all, err, want)
		}
	}
}
