package emulate

import "testing"

// What a host sends to itself is no use of the lab's network: a run of one host is not judged by
// how long its tasks waited for a processor.
func TestLoopbackIsNoUseOfTheNetwork(t *testing.T) {
	const dev = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 918230    5012    0    0    0     0          0         0   918230    5012    0    0    0     0       0          0
  eth0:   4284      17    0    0    0     0          0         0     8568      25    0    0    0     0       0          0
`
	if n := linkPackets(dev); n != 42 {
		t.Errorf("%d packets, want 17 received and 25 sent", n)
	}
}
