package docker

import (
	"testing"
	"time"
)

// Every process answers over its control connection.
func TestPrivLaunch(t *testing.T) {
	start := time.Now()
	c := begin(t, lab(4))
	t.Logf("4 nodes up in %v; notes %v", time.Since(start).Round(time.Millisecond), c.Node(0).Report.Notes)
	for i := range c.Nodes() {
		if err := c.Node(i).Conn.SendValue("echo", i); err != nil {
			t.Fatal(err)
		}
		var back int
		if _, err := c.Node(i).Conn.Expect("echo", &back); err != nil || back != i {
			t.Errorf("got %d, %v", back, err)
		}
	}
	start = time.Now()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("closed in %v", time.Since(start).Round(time.Millisecond))
}
