package experiment

import "testing"

// Where switches choose by the packet, as many packets may overtake one as two round trips and a
// queue hold, before it counts as lost; where they do not, STrack's number of them.
func TestOvertakingIsNoLossWhereSwitchesChoose(t *testing.T) {
	const head = "weft: 1\nname: lab\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 1MB}]\n"
	for text, want := range map[string][2]int{
		"transport: {kind: ccm}\nqueues: {buffer: 2MB}": {80, 160},
		"transport: {kind: ccm}":                        {30, 45}, // marks fit the default buffer
		"transport: {kind: roce, roce: {recovery: selective-repeat}}\nqueues: {routing: adaptive}": {15, 40},
		"transport: {kind: roce, roce: {recovery: selective-repeat}}\nqueues: {routing: spray}":    {15, 40},
		"transport: {kind: roce, roce: {recovery: selective-repeat}}":                              {0, 0},
		"transport: {kind: roce, roce: {recovery: selective-repeat, repath: 3}}":                   {15, 40},
		"transport: {kind: strack}": {5, 5},
	} {
		x := build(t, head+text)
		if got := x.Conns[0].Selective.Threshold; got < want[0] || got > want[1] {
			t.Errorf("%s: %d packets, want %d to %d", text, got, want[0], want[1])
		}
	}
}
