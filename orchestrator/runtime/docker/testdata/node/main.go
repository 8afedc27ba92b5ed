// Command node stands in for weft in the containers of tests. A node sends every message back, the
// fabric carries frames as well, and some messages make either misbehave.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"weft/internal/control"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime/docker"
	"weft/orchestrator/runtime/runtimetest"
)

// held is memory that a node was asked to use.
var held [][]byte

func main() {
	err := run(os.Args[1:])
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch args[0] {
	case "reap":
		return docker.Reap(context.Background(), os.Stdin, args[1], args[2])
	case "die":
		return errors.New("asked to")
	case "cat":
		_, err := io.Copy(os.Stdout, os.Stdin)
		return err
	case "interfaces":
		links, err := net.Interfaces()
		for i, l := range links {
			fmt.Print(l.Name, map[bool]string{true: "\n", false: " "}[i == len(links)-1])
		}
		return err
	case "idle":
		fmt.Println("idle")
		time.Sleep(time.Hour) // until the test kills it
	}
	conn, err := boot.Connect()
	if err != nil {
		return err
	}
	if args[0] == "fabric" {
		links, err := boot.Fabric(conn)
		if err != nil {
			return err
		}
		runtimetest.Hub(links)
	} else if _, err := boot.Node(conn); err != nil {
		return err
	}
	for {
		m, _, err := conn.Recv()
		if err != nil {
			return err
		}
		switch m.Kind {
		case "crash":
			panic("asked to")
		case "exit":
			return errors.New("told to")
		case "hang":
			time.Sleep(time.Hour) // until the test kills it
		case "memory":
			for {
				b := make([]byte, 1<<20)
				for i := range b {
					b[i] = 1
				}
				held = append(held, b)
			}
		case "try":
			m = control.Message{Kind: "tried", Body: attempts()}
		}
		if err := conn.Send(m); err != nil {
			return err
		}
	}
}
