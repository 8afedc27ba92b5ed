package lab

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"weft/collectives/schedule"
	"weft/units"
)

// among gives labs the files of a folder.
func among(files map[string]string) Options {
	folder := fstest.MapFS{}
	for name, text := range files {
		folder[name] = &fstest.MapFile{Data: []byte(text)}
	}
	o := reading(files)
	o.Files = folder
	return o
}

// A list of flows becomes a job of the hosts that it names.
func TestListedFlows(t *testing.T) {
	labs, err := Parse("lab.yaml", []byte(traced+`workload:
  - flows:
      - {from: h5, to: h1, size: 2MB, id: a}
      - {from: h1, to: h0, size: 1KB, at: 3us, after: a}
    start: 2us
    repeat: 3
`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	it := &labs[0].Workload[0]
	if it.Collective != schedule.Graph || it.Given == nil || it.Size != 2_001_000 || it.Repeat != 3 ||
		it.Start != 2*units.Microsecond || !slices.Equal(it.Ranks.Names, []string{"h0", "h1", "h5"}) {
		t.Errorf("%+v", it)
	}
	program := it.Given.Parts[1].Program // of h1
	if len(program) != 3 || program[0].Kind != schedule.Recv || program[1].Time() != 3*units.Microsecond ||
		program[2].After[0] != 1 {
		t.Errorf("%+v", program)
	}
}

// A file of flows needs as many hosts as it has nodes.
func TestFlowsFromFile(t *testing.T) {
	files := among(map[string]string{"m/a.cm": "Nodes 4\nConnections 1\n3->0 start 0 size 5000\n"})
	labs, err := Parse("lab.yaml", []byte(traced+"workload: [{flows: m/a.cm}]"), files)
	if err != nil {
		t.Fatal(err)
	}
	if it := labs[0].Workload[0]; !slices.Equal(it.Ranks.Names, []string{"h0", "h3"}) || it.Size != 5000 || it.Label != "m/a.cm" {
		t.Errorf("%+v", it)
	}
	files = among(map[string]string{"a.cm": "Nodes 99\n3->0 start 0 size 5000\n"})
	if labs, err = Parse("lab.yaml", []byte(traced+"workload: [{flows: a.cm}]"), files); err != nil {
		t.Fatal(err)
	}
	want := "workload.0.flows: a.cm is for a network of 99 nodes, and the lab has 8 hosts"
	if notes := labs[0].Notes(); len(notes) != 1 || !strings.Contains(fmt.Sprint(notes), want) {
		t.Errorf("notes %v, want %s", notes, want)
	}
}

// Nodes of a file are hosts by their names only if all of them are, so that no two are one host.
func TestFlowsByPosition(t *testing.T) {
	files := among(map[string]string{"a.cm": "Nodes 4\nConnections 2\n0->3 start 0 size 5000\n1->2 start 0 size 1\n"})
	labs, err := Parse("lab.yaml", []byte(`weft: 1
name: lab
topology: {kind: custom, nodes: [{name: sw, switch: true}, {name: h1}, {name: h2}, {name: h3}, {name: h4}],
  links: [{between: [h1, sw]}, {between: [h2, sw]}, {between: [h3, sw]}, {between: [h4, sw]}]}
workload: [{flows: a.cm}]`), files)
	if err != nil {
		t.Fatal(err)
	}
	if it := labs[0].Workload[0]; !slices.Equal(it.Ranks.Names, []string{"h1", "h2", "h3", "h4"}) {
		t.Errorf("%+v", it.Ranks)
	}
}

// A network in the place of a job is recognized, and the other way round.
func TestJobOrNetwork(t *testing.T) {
	files := among(map[string]string{"net.dot": "graph { a -- s; b -- s }", "job.goal": "num_ranks 2\nrank 0 {\n}\n"})
	for text, want := range map[string]string{
		traced + "workload: [{trace: net.dot}]":                     "workload.0.trace: net.dot:1: a network in the format dot; topology.import reads it",
		"weft: 1\nname: lab\ntopology: {import: job.goal}\n":        "topology.import: job.goal is a job in the format goal; workload.trace runs it",
		"weft: 1\nname: lab\ntopology: {import: ../job.goal}\n":     `"../job.goal"; expected a file below the lab file's folder`,
		"weft: 1\nname: lab\ntopology: {import: nothing.graphml}\n": "nothing.graphml: file does not exist",
	} {
		if _, err := Parse("lab.yaml", []byte(text), files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// Everything that is wrong with flows is reported where the lab has it.
func TestFlowsRefused(t *testing.T) {
	files := among(map[string]string{
		"a.cm": "Nodes 9\nConnections 1\n8->0 start 0 size 5000\n", "bad.cm": "Nodes 4\n0->1 oops 5\n",
	})
	for _, c := range []struct{ workload, want string }{
		{"{flows: a.cm}", "lab.yaml:4:20: workload.0.flows: a.cm has a flow of node 8; there are 8 hosts"},
		{"{flows: bad.cm}", "bad.cm:2:"},
		{"{flows: gone.cm}", "gone.cm: file does not exist"},
		{"{flows: ../a.cm}", "below the lab file's folder"},
		{"{flows: []}", "expected at least one flow"},
		{"{flows: [{from: h0, to: h0, size: 1KB}]}", "is the sender, too"},
		{"{flows: [{from: h0, to: h9, size: 1KB}]}", `no host is named "h9"`},
		{"{flows: [{from: h0, to: h1, size: 1KB, after: x}]}", `no flow has the id "x"`},
		{"{flows: [{from: h0, to: h1, size: 1KB, id: x}, {from: h2, to: h1, size: 1KB, after: x}]}", "cannot know when that ends"},
		{"{flows: [{from: h0, to: h1, size: 1KB}], ranks: 4}", "names its hosts"},
		{"{flows: [{from: h0, to: h1, size: 1KB}], algorithm: ring}", "applies to a collective, not to flows"},
		{"{collective: all-reduce, size: 1KB, flows: 4}", "flows"},
		{"{flows: 4}", "4: file does not exist"},
	} {
		_, err := Parse("lab.yaml", []byte(traced+"workload: ["+c.workload+"]"), files)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.workload, err, c.want)
		}
	}
}

const goalJob = `num_ranks 2
rank 0 {
l1: calc 3000
l2: send 4096b to 1 tag 7
l2 requires l1
}
rank 1 {
l1: recv 4096b from 0 tag 7
}
`

// The format of a trace follows from its content or is given.
func TestTraceIsJob(t *testing.T) {
	files := among(map[string]string{"a/job": goalJob, "step.csv": step, "g/0.goal": goalJob})
	for _, workload := range []string{"{trace: a/job}", "{trace: a/job, format: goal, scale_compute: 0.5}", "{trace: g/}"} {
		labs, err := Parse("lab.yaml", []byte(traced+"workload: ["+workload+", {collective: all-reduce, size: 1KB, start: previous}]"), files)
		if err != nil {
			t.Errorf("%s: %v", workload, err)
			continue
		}
		it := &labs[0].Workload[0]
		want := 3 * units.Microsecond
		if strings.Contains(workload, "scale") {
			want /= 2
		}
		if kept := labs[0].Traces; strings.Contains(workload, "a/job") && (len(kept) != 1 || kept[0].Sum != sumOf("a/job", []byte(goalJob))) {
			t.Errorf("%s: kept %+v", workload, kept)
		}
		if it.Ranks.First != 2 || it.Size != 4096 || it.Given.Parts[0].Program[0].Time() != want {
			t.Errorf("%s: %+v", workload, it)
		}
	}
	for _, c := range []struct{ workload, want string }{
		{"{trace: a/job, format: chakra}", "a/job"},
		{"{trace: step.csv, format: goal}", "step.csv:1: character ','"},
		{"{trace: step.csv, scale_compute: 2}", "applies to jobs, not to a trace of collectives"},
		{"{trace: step.csv, format: excel}", `"excel"`},
		{"{trace: gone}", "does not exist"},
		{"{trace: a/job, ranks: 3}", "3 ranks for a job of 2"},
		{"{collective: all-reduce, size: 1KB, format: goal}", "applies to a trace"},
	} {
		_, err := Parse("lab.yaml", []byte(traced+"workload: ["+c.workload+"]"), files)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.workload, err, c.want)
		}
	}
}

// A trace of any kind can be compressed. One that is cut or changed anywhere is a damaged file,
// with its name.
func TestCompressedTraces(t *testing.T) {
	for name, text := range map[string]string{"step.csv": step, "job.goal": goalJob} {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write([]byte(text))
		if err = errors.Join(err, z.Close()); err != nil {
			t.Fatal(err)
		}
		parse := func(content []byte) error {
			_, err := Parse("lab.yaml", []byte(traced+"workload: [{trace: a.gz}]"), among(map[string]string{"a.gz": string(content)}))
			return err
		}
		if err := parse(b.Bytes()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		damaged := [][]byte{append([]byte("\x1e"), b.Bytes()[1:]...)}
		for n := 2; n < b.Len(); n++ {
			damaged = append(damaged, b.Bytes()[:n])
		}
		for i := 10; i < b.Len(); i++ { // the ten before have a time and a system, too, which do not count
			damaged = append(damaged, slices.Concat(b.Bytes()[:i], []byte{b.Bytes()[i] ^ 0x55}, b.Bytes()[i+1:]))
		}
		for _, content := range damaged {
			err := parse(content)
			if err == nil || !strings.Contains(err.Error(), "a.gz: ") || !strings.Contains(err.Error(), "a damaged gzip file") {
				t.Errorf("%s: %d bytes: %v", name, len(content), err)
			}
		}
	}
}

// A second document makes a file no lab: no list has its name.
func TestHeadOfTwoDocuments(t *testing.T) {
	for text, want := range map[string]string{"name: a\nabout: b\n": "a b", "name: a\n---\nname: b\n": " ", "name: a\n--- [\n": " ", "": " "} {
		if name, about := Head([]byte(text)); name+" "+about != want {
			t.Errorf("%q: %q, %q", text, name, about)
		}
	}
}

// The XML of an algorithm runs with a size; a size belongs to nothing else.
func TestAlgorithmFile(t *testing.T) {
	files := among(map[string]string{"job": goalJob, "a.xml": `<algo name="x" nchunksperloop="2" ngpus="2" coll="alltoall" inplace="0">
<gpu id="0"><tb id="0" send="1" recv="1" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/></tb></gpu>
<gpu id="1"><tb id="0" send="0" recv="0" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/></tb></gpu></algo>`})
	labs, err := Parse("lab.yaml", []byte(traced+"workload: [{trace: a.xml, size: 8KB}]"), files)
	if err != nil {
		t.Fatal(err)
	}
	if it := labs[0].Workload[0]; it.Collective != schedule.AllToAll || it.Given == nil || it.Size != 8000 || it.Ranks.First != 2 {
		t.Errorf("%+v", it)
	}
	for _, c := range []struct{ workload, want string }{
		{"{trace: a.xml}", "an algorithm for any size; expected size"},
		{"{trace: a.xml, size: 12B}", "no multiple of 2 chunks of 4 bytes"},
		{"{trace: job, size: 1KB}", "applies to a collective"},
	} {
		_, err := Parse("lab.yaml", []byte(traced+"workload: ["+c.workload+"]"), files)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.workload, err, c.want)
		}
	}
}
