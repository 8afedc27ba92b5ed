package measure

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/fuzztest"
)

// controlMessage returns a control message as the kernel sends it with a packet.
func controlMessage(level, kind int32, data []byte) []byte {
	b := make([]byte, unix.CmsgSpace(len(data)))
	binary.NativeEndian.PutUint64(b, uint64(unix.CmsgLen(len(data))))
	binary.NativeEndian.PutUint32(b[8:], uint32(level))
	binary.NativeEndian.PutUint32(b[12:], uint32(kind))
	copy(b[16:], data)
	return b
}

func TestParse(t *testing.T) {
	stamp := binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, 2), 7)
	c := append(controlMessage(unix.SOL_SOCKET, unix.SCM_TIMESTAMPNS, stamp), controlMessage(unix.IPPROTO_IP,
		unix.IP_TOS, []byte{3})...)
	payload := []byte{0x77, 0x65, 0x66, 0x74, 0, 0, 0, 5, 0, 0, 0, 6}
	if a, ok := parse(payload, c); !ok || a != (arrival{train: 5, seq: 6, at: 2_000_000_007, ce: true}) {
		t.Errorf("%+v, %v", a, ok)
	}
	if _, ok := parse(payload[:11], c); ok {
		t.Error("a short packet was taken for a probe")
	}
	if _, ok := parse(payload, nil); ok {
		t.Error("a probe without a time was taken")
	}
	if _, ok := parse(make([]byte, 12), c); ok {
		t.Error("a packet of somebody else was taken for a probe")
	}
}

func FuzzParseProbe(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add([]byte("weft12345678"), controlMessage(unix.SOL_SOCKET, unix.SCM_TIMESTAMPNS, make([]byte, 16)))
	corpus.Add([]byte("weft12345678"), controlMessage(unix.IPPROTO_IP, unix.IP_TOS, nil))
	corpus.Fuzz(func(t *testing.T, payload, control []byte) {
		if a, ok := parse(payload, control); ok && a.at == 0 {
			t.Error("a probe without a time")
		}
	})
}
