package topology

import (
	"fmt"
	"strings"
)

// kinds is where every shape of network is registered, a line each: its name, what makes it, and, for the few that need no search, why
// packets of its networks never wait for each other in a circle (Deadlock).
var kinds = []kind{
	{"fat-tree", (*builder).fatTree, upAndDown},
	{"leaf-spine", (*builder).leafSpine, upAndDown},
	{"clos", (*builder).clos, ""},
	{"dragonfly-plus", (*builder).dragonflyPlus, ""},
	{"torus", (*builder).torus, ""},
	{"dumbbell", (*builder).dumbbell, upAndDown},
	{"star", (*builder).star, upAndDown},
	{"custom", (*builder).custom, "whoever draws a circle by hand may want to see what it does"},
}

// upAndDown is why trees are not searched. Links that are down may bend their paths, which is what some experiments are about.
const upAndDown = "shortest paths go up and then down"

// kind is a shape of network.
type kind struct {
	name  string
	build func(*builder) error
	free  string // why its networks are not searched for a circle; "": they are
}

func (b *builder) generate() error {
	var names []string
	for _, k := range kinds {
		if k.name == b.t.Kind {
			b.g.searched = k.free == ""
			return k.build(b)
		}
		names = append(names, k.name)
	}
	last := len(names) - 1
	return fmt.Errorf("kind %q: want %s or %s", b.t.Kind, strings.Join(names[:last], ", "), names[last])
}
