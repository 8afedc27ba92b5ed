package schedule_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weft/collectives/schedule"
	"weft/collectives/schedule/scheduletest"
	"weft/units"
)

var bounds = scheduletest.Bounds{Ranks: 40, Elements: 5000, Chunks: []int{0, 1, 7, 100, 256, 6000}}

// message identifies a message of a collective.
type message struct {
	from, to int
	tag      uint32
}

// Every program matches its closed forms, and each send has exactly one receive of the same length
// and tag.
func TestProgramsMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scheduletest.Any(t, bounds)
		tags, err := schedule.Tags(s)
		if err != nil {
			t.Fatal(err)
		}
		open := map[message]schedule.Op{}
		received := map[message]schedule.Op{}
		for r := range s.Ranks {
			p := buildProgram(t, s, r)
			l, err := schedule.Shape(s, r)
			if err != nil {
				t.Fatal(err)
			}
			var got schedule.Traffic
			for i, op := range p {
				limit := l.Out
				if op.Buf == schedule.In {
					limit = l.In
				}
				element := s.Type.Size()
				if op.Len < 1 || op.Off < 0 || op.Off+op.Len > limit || op.Off%element != 0 || op.Len%element != 0 {
					t.Fatalf("rank %d op %d: [%d,+%d) of %d", r, i, op.Off, op.Len, limit)
				}
				if op.Tag >= tags || op.Peer == r {
					t.Fatalf("rank %d op %d: tag %d of %d, peer %d", r, i, op.Tag, tags, op.Peer)
				}
				for _, a := range op.After {
					if a < 0 || int(a) >= len(p) || int(a) == i {
						t.Fatalf("rank %d op %d is after %d", r, i, a)
					}
				}
				switch op.Kind {
				case schedule.Send:
					got.Sends++
					got.Sent += op.Len
					m := message{r, op.Peer, op.Tag}
					if _, twice := open[m]; twice {
						t.Fatalf("%v is sent twice", m)
					}
					open[m] = op
				case schedule.Recv:
					got.Receives++
					got.Received += op.Len
					m := message{op.Peer, r, op.Tag}
					if _, twice := received[m]; twice {
						t.Fatalf("%v is received twice", m)
					}
					received[m] = op
				}
			}
			want, err := schedule.Volume(s, r)
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Fatalf("rank %d moves %+v, closed form %+v", r, got, want)
			}
		}
		for m, op := range received {
			if open[m].Len != op.Len || open[m].Credit != op.Credit {
				t.Fatalf("%v: sent %+v, expected %+v", m, open[m], op)
			}
			delete(open, m)
		}
		if len(open) != 0 {
			t.Fatalf("sent and never received: %v", open)
		}
	})
}

// Peers lists the peers of the program at both ends. If blocks are empty there may be more.
func TestPeers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scheduletest.Any(t, bounds)
		exact := s.Size >= units.Bytes(s.Ranks*s.Ranks)*schedule.Element
		pairs := map[[2]int]int{}
		for r := range s.Ranks {
			sends, receives, err := schedule.Peers(s, r)
			if err != nil {
				t.Fatal(err)
			}
			for _, to := range sends {
				pairs[[2]int{r, to}]++
			}
			for _, from := range receives {
				pairs[[2]int{from, r}] += 1000
			}
			var used [3][]int
			for _, op := range buildProgram(t, s, r) {
				if !slices.Contains(used[op.Kind], op.Peer) {
					used[op.Kind] = append(used[op.Kind], op.Peer)
				}
			}
			for kind, named := range map[schedule.Kind][]int{schedule.Send: sends, schedule.Recv: receives} {
				for _, p := range used[kind] {
					if !slices.Contains(named, p) {
						t.Fatalf("rank %d: %v of rank %d is not among %v", r, kind, p, named)
					}
				}
				if exact && len(named) != len(used[kind]) {
					t.Fatalf("rank %d: %v of %v, but the peers are %v", r, kind, used[kind], named)
				}
			}
			inflow, err := schedule.Inflow(s, r)
			if err != nil || inflow > max(1, s.Flows)*len(receives) || (inflow == 0) != (len(receives) == 0) {
				t.Fatalf("rank %d: inflow %d of %d, %v", r, inflow, len(receives), err)
			}
		}
		for pair, n := range pairs {
			if n != 1001 {
				t.Fatalf("%v: named %d times by the receiver, %d by the sender", pair, n/1000, n%1000)
			}
		}
	})
}

// Results and local copies lie inside the buffers, in order, without overlap, and every rank's
// result has the size that defines its collective.
func TestShape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scheduletest.Any(t, bounds)
		var total, want units.Bytes
		for r := range s.Ranks {
			l, err := schedule.Shape(s, r)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range results(s, r) {
				want += units.Bytes(part.size) * s.Type.Size()
			}
			end := units.Bytes(0)
			for _, w := range l.Result {
				if w.Off < end || w.Len < 1 {
					t.Fatalf("result %+v after %d", w, end)
				}
				end = w.Off + w.Len
				total += w.Len
			}
			if end > l.Out {
				t.Fatalf("the result ends at %d of %d bytes", end, l.Out)
			}
			end = 0
			for _, c := range l.Local {
				if c.Off < end || c.Off+c.Len > l.Out || c.From+c.Len > s.Size*units.Bytes(max(1, s.Flows)) {
					t.Fatalf("%+v in %d bytes", c, l.Out)
				}
				end = c.Off + c.Len
			}
		}
		if total != want {
			t.Fatalf("all results have %d bytes, want %d", total, want)
		}
	})
}

// Stages never decrease. Credits have none.
func TestStages(t *testing.T) {
	scheduletest.Every(16, 16*4*units.KB, 1024, func(s schedule.Spec) {
		for r := range s.Ranks {
			last := uint8(0)
			for i, op := range buildProgram(t, s, r) {
				if op.Kind != schedule.Recv || op.Credit {
					continue
				}
				if op.Stage < last {
					t.Errorf("%s %s rank %d op %d: stage %d after %d", s.Collective, s.Algorithm, r, i, op.Stage, last)
				}
				last = op.Stage
			}
		}
	})
}

// Every algorithm that is listed can be built and has facts.
func TestCatalog(t *testing.T) {
	defaults := map[string]string{
		schedule.AllReduce: schedule.Ring, schedule.AllGather: schedule.Ring, schedule.ReduceScatter: schedule.Ring,
		schedule.AllToAll: schedule.Direct, schedule.Permute: schedule.Direct, schedule.Incast: schedule.Direct,
	}
	seen := map[string]bool{}
	scheduletest.Every(8, 1024, 0, func(s schedule.Spec) {
		if _, err := schedule.Build(s, 3); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
		seen[s.Collective+" "+s.Algorithm] = true
	})
	for _, c := range schedule.Collectives() {
		all := schedule.Algorithms(c)
		if want, ok := defaults[c]; len(all) == 0 || ok && all[0] != want {
			t.Errorf("%s: algorithms %v, want %s first", c, all, want)
		}
		for _, a := range all {
			if !seen[c+" "+a] {
				t.Errorf("%s %s was not built", c, a)
			}
		}
	}
	if a, b := schedule.DefaultChunk("all-reduce", "ring"), schedule.DefaultChunk("all-to-all", "direct"); a != 128*units.KB || b != 0 {
		t.Errorf("chunks of %v and %v", a, b)
	}
	if schedule.Algorithms("gossip") != nil {
		t.Error("an algorithm for gossip")
	}
	if _, err := schedule.About(schedule.AllReduce, schedule.Pull); err == nil {
		t.Error("an all-reduce by pull")
	}
}

// The closed forms need no programs: what a host asks before it starts is cheap even for very many
// ranks.
func TestClosedFormsAreCheap(t *testing.T) {
	const n = 1 << 14
	scheduletest.Every(n, n*units.MB, 0, func(s schedule.Spec) {
		perAnswer := testing.AllocsPerRun(3, func() {
			_, err1 := schedule.Tags(s)
			_, err2 := schedule.Volume(s, n/3)
			_, err3 := schedule.Inflow(s, n/3)
			if err1 != nil || err2 != nil || err3 != nil {
				t.Fatal(err1, err2, err3)
			}
		})
		if perAnswer > 200 {
			t.Errorf("%s %s: %.0f allocations", s.Collective, s.Algorithm, perAnswer)
		}
	})
}

// flight executes a collective over a network that may be as unfair as it likes, but delivers the
// messages from one rank to another in order. It counts the concurrent messages of each rank.
type flight struct {
	programs  []schedule.Program
	left      [][]int // by rank and op: open dependencies, -1 once it has begun
	next      [][][]int
	receives  map[message]int
	queue     map[[2]int][]int // sends in flight, by pair
	pairs     [][2]int         // pairs with sends in flight
	out, in   []int
	maxOut    int
	maxIn     int
	completed int
}

// newFlight returns a collective before its first op.
func newFlight(t interface{ Fatal(...any) }, s schedule.Spec) *flight {
	f := &flight{
		receives: map[message]int{}, queue: map[[2]int][]int{},
		out: make([]int, s.Ranks), in: make([]int, s.Ranks),
	}
	for r := range s.Ranks {
		p := buildProgram(t, s, r)
		left, next := make([]int, len(p)), make([][]int, len(p))
		for i, op := range p {
			left[i] = len(op.After)
			for _, a := range op.After {
				next[a] = append(next[a], i)
			}
			if op.Kind == schedule.Recv {
				f.receives[message{op.Peer, r, op.Tag}] = i
			}
		}
		f.programs, f.left, f.next = append(f.programs, p), append(f.left, left), append(f.next, next)
	}
	for r, p := range f.programs {
		for i := range p {
			f.begin(r, i)
		}
	}
	return f
}

// begin starts op i of rank r if it is a send without open dependencies.
func (f *flight) begin(r, i int) {
	op := f.programs[r][i]
	if op.Kind != schedule.Send || f.left[r][i] != 0 {
		return
	}
	f.left[r][i] = -1
	pair := [2]int{r, op.Peer}
	if len(f.queue[pair]) == 0 {
		f.pairs = append(f.pairs, pair)
	}
	f.queue[pair] = append(f.queue[pair], i)
	if !op.Credit {
		f.out[r]++
		f.in[op.Peer]++
		f.maxOut, f.maxIn = max(f.maxOut, f.out[r]), max(f.maxIn, f.in[op.Peer])
	}
}

// arrive completes the oldest message of a pair at both ends.
func (f *flight) arrive(k int) {
	pair := f.pairs[k]
	q := f.queue[pair]
	i := q[0]
	if f.queue[pair] = q[1:]; len(q) == 1 {
		f.pairs = slices.Delete(f.pairs, k, k+1)
	}
	op := f.programs[pair[0]][i]
	if !op.Credit {
		f.out[pair[0]]--
		f.in[pair[1]]--
	}
	f.complete(pair[1], f.receives[message{pair[0], pair[1], op.Tag}])
	f.complete(pair[0], i)
}

// complete marks op i of rank r as done and begins the ops that waited for it.
func (f *flight) complete(r, i int) {
	f.completed++
	for _, n := range f.next[r][i] {
		f.left[r][n]--
		f.begin(r, n)
	}
}

// In a windowed all-to-all every rank sends and receives at most Parallel messages at once,
// whatever the network does. A direct one limits only the sender.
func TestWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schedule.Spec{
			Collective: schedule.AllToAll, Algorithm: schedule.Windowed,
			Ranks:    rapid.IntRange(2, 24).Draw(t, "ranks"),
			Parallel: rapid.IntRange(1, 8).Draw(t, "parallel"),
		}
		s.Size = schedule.Element * units.Bytes(rapid.IntRange(1, 2*s.Ranks).Draw(t, "elements"))
		f := newFlight(t, s)
		// Few pairs are fast: the messages of the others stay in flight as long as anything else
		// can happen.
		fast := rapid.Uint64().Draw(t, "fast pairs")
		total := 0
		for _, p := range f.programs {
			total += len(p)
		}
		for len(f.pairs) > 0 {
			k := slices.IndexFunc(f.pairs, func(p [2]int) bool { return fast>>((p[0]*7+p[1]*3)%64)&1 != 0 })
			f.arrive(max(k, 0))
			if f.maxOut > s.Parallel || f.maxIn > s.Parallel {
				t.Fatalf("%d sent and %d received at once, window %d", f.maxOut, f.maxIn, s.Parallel)
			}
		}
		if f.completed != total {
			t.Fatalf("%d of %d ops complete: deadlock", f.completed, total)
		}
	})
	// One slow receiver is enough to fill a rank without credits.
	s := schedule.Spec{Collective: schedule.AllToAll, Algorithm: schedule.Direct, Ranks: 24, Size: 960, Parallel: 2}
	f := newFlight(t, s)
	for len(f.pairs) > 0 {
		f.arrive(max(0, slices.IndexFunc(f.pairs, func(p [2]int) bool { return p[1] != 5 })))
	}
	if f.maxOut != 2 || f.maxIn < 20 {
		t.Errorf("direct: %d sent and %d received at once", f.maxOut, f.maxIn)
	}
}

func ExampleAlgorithms() {
	fmt.Println(schedule.Algorithms(schedule.AllReduce))
	// Output: [ring halving-doubling double-binary-tree direct hierarchical]
}
