package realtime

import (
	"bytes"
	"testing"
)

func FuzzCaptured(f *testing.F) {
	f.Add((&Captured{At: 5, Out: true, Length: 3, Dropped: 1, Frame: []byte{1, 2, 3}}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCaptured(b)
		if err != nil {
			return
		}
		if again := c.Append(nil); !bytes.Equal(again, b) {
			t.Errorf("% x was read as %+v, which is % x", b, c, again)
		}
	})
}
