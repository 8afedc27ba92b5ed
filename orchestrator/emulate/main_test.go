package emulate

import (
	"fmt"
	"os"
	"testing"

	"weft/internal/control"
	"weft/internal/dockertest"
	"weft/orchestrator/uml/umltest"
)

// TestMain is also the processes of the labs that the tests start: they run this program again.
func TestMain(m *testing.M) {
	var process func(*control.Conn) error
	if len(os.Args) == 2 {
		process = map[string]func(*control.Conn) error{"node": NodeProcess, "fabric": FabricProcess}[os.Args[1]]
	}
	if process == nil {
		umltest.Main(m, dockertest.Stop)
	}
	conn, err := control.Open(control.FD)
	if err == nil {
		err = process(conn)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
