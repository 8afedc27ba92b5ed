package lab

import (
	"fmt"
	"strings"
	"testing"
)

// The largest sweep there may be, and the largest topology: what Parse costs at most.
func BenchmarkParse(b *testing.B) {
	var values []string
	for i := range 31 {
		values = append(values, fmt.Sprint(1000+i))
	}
	list := "[" + strings.Join(values, ", ") + "]"
	var custom strings.Builder
	custom.WriteString("weft: 1\nname: lab\ntopology:\n  kind: custom\n  nodes:\n    - {name: s, switch: true}\n")
	for i := range 8000 {
		fmt.Fprintf(&custom, "    - {name: h%d}\n", i)
	}
	custom.WriteString("  links:\n")
	for i := range 8000 {
		fmt.Fprintf(&custom, "    - {between: [h%d, s]}\n", i)
	}
	for name, text := range map[string]string{
		"sweep of 961": star + "sweep:\n  seed: " + list + "\n  topology.mtu: " + list + "\n",
		"custom 8000":  custom.String(),
		"bad names":    star + "sweep:\n  workload.0.ranks: [[" + strings.Repeat("xxxxxx, ", 30000) + "h0]]\n",
		"incast":       star,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = Parse("lab.yaml", []byte(text), Options{})
			}
		})
	}
}
