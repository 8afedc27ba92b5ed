package namespace

import (
	"context"
	"testing"
	"time"
)

func TestPrivUpAndDown(t *testing.T) {
	start := time.Now()
	c, err := Launch(context.Background(), lab(16))
	if err != nil {
		t.Fatal(err)
	}
	up := time.Since(start)
	for i := range c.Nodes() {
		p := c.Node(i)
		if err := p.Conn.SendValue("hello", p.Name); err != nil {
			t.Error(err)
		}
		var back string
		if _, err := p.Conn.Expect("hello", &back); err != nil || back != p.Name {
			t.Errorf("%s answered %q, %v", p.Name, back, err)
		}
	}
	t.Logf("%+v", c.Node(3))
	t.Logf("%+v", c.Fabric())
	start = time.Now()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("16 hosts and the fabric: up in %v, down in %v", up, time.Since(start))
}
