package ports

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"weft/fabric"
)

// The decisions that the kernel datapath can make about a property of a port.
const (
	mapped  = "what Shape returns follows from it"
	refused = "package lab refuses labs for the kernel datapath that set it (kernel.go)"
	modeled = "only what labs for the kernel datapath cannot have follows from it"
)

// properties lists every property of a fabric port and its decision.
var properties = map[reflect.Type]map[string]string{
	reflect.TypeFor[fabric.PortConfig](): {
		"From": mapped, "To": mapped, "Link": mapped, "Buffer": mapped, "ECN": mapped, "PFC": refused, "Trim": refused,
		"Light": mapped, "Congested": mapped, // rows of BPF programs: package kernelpath
		"Aside": mapped, // programs without detours: package kernelpath
	},
	reflect.TypeFor[fabric.ECNConfig](): {"Kmin": mapped, "Kmax": mapped, "Pmax": mapped, "On": mapped,
		"Ingress": refused},
	reflect.TypeFor[fabric.Link](): {"Rate": mapped, "Delay": mapped, "Loss": mapped, "BitErrors": refused,
		"Reorder": mapped, "ReorderBy": mapped, "Duplicate": mapped, "Jitter": mapped},
}

// A new property of the modelled fabric must not be accepted and then ignored by the kernel
// datapath.
func TestEveryPropertyOfAPortIsDecided(t *testing.T) {
	for typ, decided := range properties {
		fields := map[string]bool{}
		for f := range typ.Fields() {
			fields[f.Name] = true
			if decided[f.Name] == "" {
				t.Errorf("%s.%s: decide what the kernel datapath does with it. Either Real makes a property of "+
					"the link's "+
					"queueing disciplines of it, or package lab refuses it in kernel.go; then name it here", typ,
					f.Name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(decided)) {
			if !fields[name] {
				t.Errorf("%s has no field %s any more", typ, name)
			}
		}
	}
}
