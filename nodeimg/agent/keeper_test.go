package agent

import (
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/control"
	"weft/transport/wire"
)

// A node that has lent its sockets opens more, reports the drops of its interface, and outlives the
// process that drives it.
func TestKeeper(t *testing.T) {
	orchestrator, conn, err := control.Connected()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	socket := listenSocket(t, wire.Port)
	lent, err := unix.FcntlInt(uintptr(socket), unix.F_DUPFD_CLOEXEC, 0) // the node closes what it lends
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- serve(conn, []int{lent}, nil) }()
	if err := orchestrator.SendValue(KindLend, nil); err != nil {
		t.Fatal(err)
	}
	fds, err := orchestrator.Expect(KindLent, nil)
	if err != nil || len(fds) != 2 {
		t.Fatalf("%d descriptors, %v; want a connection and a socket", len(fds), err)
	}
	ours, theirs, err := control.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	given, err := unix.FcntlInt(theirs.Fd(), unix.F_DUPFD_CLOEXEC, 0) // the message's own
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	a, left, err := adopt(control.Message{Kind: KindAdopt, Body: []byte(`{"Name":"h0","Left":3}`)}, append([]int{given}, fds...))
	if err != nil || left != 3 || a.name != "h0" || len(a.sockets) != 1 {
		t.Fatalf("%+v, %d left, %v", a, left, err)
	}
	defer unix.Close(a.sockets[0])
	opened, err := a.keeper.open([]socketSpec{{From: loopback, Port: 50100, To: loopback, ToPort: wire.Port,
		TOS: tosECT0}, {From: loopback, Port: 50101}})
	if err != nil || len(opened) != 2 {
		t.Fatalf("opened %v, %v", opened, err)
	}
	defer unix.Close(opened[0])
	defer unix.Close(opened[1])
	if name, err := unix.Getsockname(opened[0]); err != nil || name.(*unix.SockaddrInet4).Port != 50100 {
		t.Errorf("bound to %v, %v", name, err)
	}
	if tos, err := unix.GetsockoptInt(opened[0], unix.IPPROTO_IP, unix.IP_TOS); err != nil || tos != tosECT0 {
		t.Errorf("TOS %d, %v", tos, err)
	}
	if _, err := a.keeper.open([]socketSpec{{From: [4]byte{192, 0, 2, 1}, Port: 50100}}); err == nil {
		t.Error("a socket was bound to an address that is not there")
	}
	a.keeper.drops()
	a.keeper.conn.Close()
	if err := orchestrator.SendValue("anything", nil); err != nil { // it expects no message, and ends
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
