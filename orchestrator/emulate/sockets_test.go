package emulate

import (
	"strings"
	"testing"

	"weft/host"
	"weft/nodeimg/agent"
	"weft/transport"
)

// A host with more connections than its process may open sockets for is known before the start.
func TestCheckSockets(t *testing.T) {
	const hosts = 8
	each := (hosts + Agents(hosts) - 1) / Agents(hosts)
	may, err := agent.SocketsFor(each)
	if err != nil {
		t.Fatal(err)
	}
	plans := make([]host.Plan, hosts)
	for _, more := range []int{0, 1} {
		plans[hosts-1].Conns = make([]transport.Spec, may+more)
		err := CheckSockets(plans)
		if (err != nil) != (more > 0) {
			t.Errorf("%d connections, %d sockets: %v", may+more, may, err)
		}
		if err != nil && !strings.Contains(err.Error(), "raise that limit (ulimit -n)") {
			t.Error(err)
		}
	}
}
