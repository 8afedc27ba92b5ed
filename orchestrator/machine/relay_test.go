package machine

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"weft/internal/control"
	"weft/internal/quiettest"
)

// What either end of a relayed connection sends before it closes arrives, although the other never
// stops sending, as the machine that starts a run does with the time of its clock.
func TestLastMessageArrives(t *testing.T) {
	last := control.Message{Kind: "report", Body: bytes.Repeat([]byte("1"), 8<<20)} // more than all buffers on the way
	for _, from := range []string{"the process", "the run"} {
		near, far := twoMachines(t, false)
		for k := range near {
			for p, there := range far[k].ends {
				here := near[k].Fabric().Conn
				if p > 0 {
					here = near[k].Node(p - 1).Conn
				}
				ends, keeps := there, here
				if from == "the run" {
					ends, keeps = here, there
				}
				if err := ends.SendValue("hello", nil); err != nil {
					t.Fatal(err)
				}
				expect(t, keeps, "hello", nil) // the relay is there
				flooded, closed := make(chan error, 1), make(chan error, 1)
				go func() {
					chatter := control.Message{Kind: "time", Body: []byte(`"` + strings.Repeat("t", 1000) + `"`)}
					var err error
					for err == nil {
						err = keeps.Send(chatter)
					}
					flooded <- err
				}()
				go func() {
					err := ends.Send(last)
					ends.Close() // with messages that it has not read
					closed <- err
				}()
				_ = keeps.SetReadDeadline(time.Now().Add(quiettest.Patience))
				if m, _, err := keeps.Recv(); err != nil || m.Kind != last.Kind || len(m.Body) != len(last.Body) {
					t.Errorf("from %s %d on machine %d: %q of %d bytes arrived, of %d: %v", from, p, k, m.Kind, len(m.Body),
						len(last.Body), err)
				}
				if m, _, err := keeps.Recv(); !control.Gone(err) {
					t.Errorf("after the last message came %q, %v", m.Kind, err)
				}
				if err := <-closed; err != nil {
					t.Error(err)
				}
				if err := <-flooded; !control.Gone(err) {
					t.Error(err)
				}
			}
		}
	}
}
