package run

import (
	"strings"
	"testing"
)

const disorderly = `
weft: 1
name: disorderly
topology: {kind: fat-tree, k: 4, link: {rate: 100Gbps, delay: 1us, loss: 1%, duplicate: 1%, reorder: 5%, reorder_by: 20us}}
transport: {kind: KIND}
workload: [{collective: all-to-all, size: 2MB}]
`

// Every transport delivers every byte once over links that lose, duplicate and delay packets.
func TestEveryTransportHandlesDisorder(t *testing.T) {
	for _, kind := range transportKinds {
		s, err := simulateLab(t, strings.Replace(disorderly, "KIND", kind, 1))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if n := s.Network; !s.Verified || s.Flows.Unfinished > 0 || n.Lost == 0 || n.Duplicated == 0 || n.Late == 0 {
			t.Errorf("%s: verified %t, %+v", kind, s.Verified, n)
		}
	}
}
