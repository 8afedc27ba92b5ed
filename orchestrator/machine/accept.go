package machine

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"weft/internal/cleanup"
	"weft/internal/control"
	"weft/internal/remote"
)

// maxNew is the number of connections whose other end has not shown yet that it has the secret, and
// acceptPause is between attempts to accept a connection while that fails. Ours.
const (
	maxNew      = 64
	acceptPause = 100 * time.Millisecond
)

// serve accepts connections from clients with the secret, and hands each to a goroutine, until ctx
// ends and all have returned.
func serve(
	ctx context.Context, l net.Listener, config *tls.Config, handle func(context.Context, *link, net.Addr),
) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var all sync.WaitGroup
	defer all.Wait()
	strangers := remote.Strangers{Most: maxNew}
	for {
		c, err := l.Accept()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // too many open files, say: connections that end make room
			select {
			case <-ctx.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		strangers.Add(c)
		all.Go(func() {
			conn, err := accept(ctx, c, config)
			strangers.Remove(c)
			if err == nil { // strangers are not worth a line each: they could fill the output
				handle(ctx, conn, c.RemoteAddr())
			}
		})
	}
}

// accept completes the handshake, in which the other end proves that it has the secret.
func accept(ctx context.Context, c net.Conn, config *tls.Config) (*link, error) {
	t := tls.Server(c, config)
	ctx, cancel := context.WithTimeout(ctx, launchSilence)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, cleanup.Join(err, c.Close())
	}
	return messages(t)
}

// first returns the first message of a connection, which says what it is; nil: there is none.
func first(conn *link) *control.Message {
	_ = conn.SetReadDeadline(time.Now().Add(launchSilence))
	m, fds, err := conn.Recv()
	if err != nil || len(fds) > 0 {
		control.CloseAll(fds)
		conn.Close()
		return nil
	}
	_ = conn.SetReadDeadline(time.Time{})
	return &m
}
