package wasm

import (
	"os"
	"testing"

	"weft/transport/cc"
	"weft/units"
)

// BenchmarkAck is an acknowledgement at one of many connections of the module in WEFT_MODULE.
func BenchmarkAck(b *testing.B) {
	bytes, err := os.ReadFile(os.Getenv("WEFT_MODULE"))
	if err != nil {
		b.Skip("no module in WEFT_MODULE")
	}
	m, err := Load(bytes)
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1, 1024} {
		senders := make([]*Sender, n)
		for i := range senders {
			senders[i] = NewSender(Params{Module: m.Hash, Values: defaults(b, m)}, probeLink)
		}
		b.Run(map[bool]string{true: "one", false: "many"}[n == 1], func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				now := units.Time(i) * units.Microsecond
				senders[i%n].OnAck(now, cc.Ack{Size: 4096, Packets: 1, SentAt: now, RTT: 9 * units.Microsecond})
			}
		})
	}
}
