package schedule

// Parameter server: the root holds parameters, all others are workers that hold gradients. Push: every worker
// sends its Size bytes to the root, which reduces them into the parameters: an n−1 to 1 incast (PC4, Fig. 6a).
// Pull: the root sends the parameters to every worker. Both: a worker gets each piece back, reduced, when all
// have pushed it.

var parameterServer = collective{
	name: ParameterServer, facts: Facts{Rooted: true, RootApart: true, Reduces: true}, bus: once, // ours: what crosses the root's link
	due: func(s Spec, rank int) elements {
		if s.Algorithm == Push {
			return atRoot(s, rank)
		}
		return whole(s, rank)
	},
	variants: []variant{
		{Both, pipelined, by(newParameterServer)},
		{Push, nil, by(newParameterServer)},
		{Pull, func(f *Facts) { f.Reduces = false }, by(newParameterServer)},
	},
}

func newParameterServer(s Spec) *trees {
	t := newRooted(s,
		func(v int) int { return min(v, 1) - 1 },
		func(v int) (c []int) {
			for w := 1; v == 0 && w < s.Ranks; w++ {
				c = append(c, w)
			}
			return c
		})
	t.up, t.down = s.Algorithm != Pull, s.Algorithm != Push
	return t
}
