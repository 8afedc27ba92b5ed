package schedule

var parameterServer = collective{
	name: ParameterServer, facts: Facts{Rooted: true, RootApart: true, Reduces: true},
	bus: unity, // ours: the rate of the root's link
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

// newParameterServer returns the collective of a parameter server. The root holds parameters, and
// all other ranks are workers that hold gradients. In Push, every worker sends its Size bytes to
// the root, which reduces them into the parameters: an n−1 to 1 incast (PC4, Fig. 6a). In Pull, the
// root sends the parameters to every worker. In Both, a worker gets each piece back, reduced, once
// all workers have pushed it.
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
