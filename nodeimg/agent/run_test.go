package agent

import (
	"testing"
	"time"

	"weft/host"
	"weft/internal/clock"
	"weft/internal/control"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// A node that has sent its results runs, with its sockets, until the orchestrator hangs up. The
// fabric ends after the nodes and may still deliver packets, which the kernel would answer with
// ICMP errors.
func TestNodeStaysUntilTheEnd(t *testing.T) {
	orchestrator, conn, err := control.Connected()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	socket := listenSocket(t, wire.Port)
	plan := host.Plan{Name: "h0", Endpoint: transport.Config{MTU: 4096, LineRate: 100 * units.Gbps}}
	go func() {
		ended <- serve(conn, []int{socket}, func(int64) string { return "none" })
	}()
	send := func(kind string, v any) {
		t.Helper()
		if err := orchestrator.SendValue(kind, v); err != nil {
			t.Fatal(err)
		}
	}
	send(KindConfigure, Config{Plan: plan, Dilation: 1, Peers: [][4]byte{loopback}})
	if _, err := orchestrator.Expect(KindReady, nil); err != nil {
		t.Fatal(err)
	}
	send(KindStart, Start{T0: clock.NewClock().Now()})
	send(KindStop, nil)
	for {
		m, _, err := orchestrator.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if m.Kind == KindResults {
			break
		}
	}
	select {
	case err := <-ended:
		t.Errorf("it ended before the orchestrator hung up: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	orchestrator.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
