package emulate

import (
	"fmt"
	"time"

	"weft/nodeimg/boot"
	"weft/units"
)

// TCP has settings of hosts' routes for the kernel's TCP. RTOMin is lab time, and replaces that of
// TCP; 0: the kernel's own.
type TCP struct {
	boot.TCP
	RTOMin units.Time
}

// real returns the settings in real time. The kernel counts timeouts in milliseconds.
func (t *TCP) real(dilation float64) (boot.TCP, error) {
	out := t.TCP
	out.RTOMin = time.Duration(float64(t.RTOMin.Duration()) * dilation).Round(time.Millisecond)
	const longest = 2 * time.Minute // TCP_RTO_MAX
	if t.RTOMin > 0 && (out.RTOMin < time.Millisecond || out.RTOMin > longest) {
		return out, fmt.Errorf("engine.tcp.rto_min: %v is %v of real time at dilation %g; the kernel's timeouts are "+
			"1 ms to %v", t.RTOMin, time.Duration(float64(t.RTOMin.Duration())*dilation), dilation, longest)
	}
	return out, nil
}
