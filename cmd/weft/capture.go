package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weft/fabric/realtime"
	"weft/orchestrator/deploy"
	"weft/orchestrator/pcapng"
)

// captureFlags are the flags of weft capture.
type captureFlags struct {
	lab, file string
	snap      int
	count     int64
	limit     time.Duration
}

func (a *app) captureCommand() *cobra.Command {
	var flags captureFlags
	cmd := &cobra.Command{
		Use:   "capture NODE|PORT -w FILE",
		Short: "write packets of a node or a port of a deployed lab as pcapng",
		Long: "Write what a node sends and receives, or what a port of a switch (or a node's NIC) sends, until Ctrl-C. The file is for\n" +
			"Wireshark, tshark and tcpdump; - is standard output. Times in it are lab time: of a port the instant at which a\n" +
			"packet's first bit leaves, of a node that at which the network took or delivered it. weft schema dissector has\n" +
			"Wireshark understand Weft's own headers.",
		Example: "  weft capture h0 -w h0.pcapng\n  weft capture 'edge0->agg1' -w port.pcapng --count 100",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, done, err := a.deployed(flags.lab)
			if err != nil {
				return err
			}
			defer done()
			return a.capture(cmd.Context(), h, args[0], &flags)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.lab, "lab", "", "name or file of the lab; without it the only one")
	f.StringVarP(&flags.file, "write", "w", "", "file to write; - for standard output")
	f.IntVar(&flags.snap, "snap", 0, "the most bytes to keep of a packet (default all)")
	f.Int64Var(&flags.count, "count", 0, "end after so many packets")
	f.DurationVar(&flags.limit, "for", 0, "end after this long, such as 10s, of real time")
	_ = cmd.MarkFlagRequired("write") // it is there
	return cmd
}

// capture copies frames to a file until it has them, ctx ends or the lab does.
func (a *app) capture(ctx context.Context, h *deploy.Handle, what string, flags *captureFlags) (err error) {
	if flags.snap < 0 || flags.count < 0 || flags.limit < 0 {
		return usagef("--snap, --count and --for must not be negative")
	}
	ours, theirs, err := messages()
	if err != nil {
		return err
	}
	defer ours.Close()
	is, err := h.Capture(deploy.Capture{What: what, Snap: flags.snap}, theirs)
	theirs.Close()
	if err != nil {
		return err
	}
	out, err := a.createCapture(flags.file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if flags.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, flags.limit)
		defer cancel()
	}
	stop := context.AfterFunc(ctx, func() { ours.SetReadDeadline(time.Now()) })
	defer stop()
	fmt.Fprintf(a.stderr, "capturing %s of %s; Ctrl-C ends it\n", is.Name, is.Lab)
	buffered := bufio.NewWriter(out)
	n, lost, err := copyFrames(buffered, ours, flags, is)
	err = errors.Join(err, buffered.Flush())
	fmt.Fprintf(a.stderr, "%s captured\n", plural(int(n), "packet"))
	if lost > 0 {
		fmt.Fprintf(a.stderr, "%s could not be written in time and are missing\n", plural(int(lost), "packet"))
	}
	return err
}

// createCapture opens what a capture is written to.
func (a *app) createCapture(name string) (io.WriteCloser, error) {
	if name == "-" {
		return struct {
			io.Writer
			io.Closer
		}{a.stdout, io.NopCloser(nil)}, nil
	}
	return os.Create(name)
}

// maxRecord is the longest record of a captured frame.
const maxRecord = 128 << 10

// copyFrames writes what comes until enough has, or no more does. A capture that was told to end is a good one.
func copyFrames(w *bufio.Writer, from *os.File, flags *captureFlags, is deploy.Capturing) (n, lost int64, err error) {
	kind := "node"
	if is.Port {
		kind = "port"
	}
	file, err := pcapng.NewWriter(w, pcapng.Interface{
		Name: is.Name, Description: fmt.Sprintf("%s %s of lab %s", kind, is.Name, is.Lab), Snap: flags.snap,
		Comment: fmt.Sprintf("times are lab time; the lab ran %g times slower", is.Dilation), Program: "weft " + versionText(),
	})
	if err != nil {
		return 0, 0, err
	}
	record := make([]byte, maxRecord)
	for flags.count == 0 || n < flags.count {
		size, err := from.Read(record)
		if err != nil || size == 0 {
			return n, lost, endOfCapture(err)
		}
		c, err := realtime.ParseCaptured(record[:size])
		if err != nil {
			return n, lost, err
		}
		lost += int64(c.Dropped)
		if err := file.Write(pcapng.Frame{At: c.At, Out: c.Out, Length: c.Length, Dropped: c.Dropped, Data: c.Frame}); err != nil {
			return n, lost, err
		}
		n++
		if w.Buffered() > 0 && flags.file == "-" {
			if err := w.Flush(); err != nil {
				return n, lost, err
			}
		}
	}
	return n, lost, nil
}

// endOfCapture is nil for what ends captures that are well.
func endOfCapture(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	return err
}

// captureBuffer is how many bytes of records may wait to be written, if the machine allows.
const captureBuffer = 4 << 20

// messages makes a pair of sockets that carry a record per message.
func messages() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("capture: %w", err)
	}
	for _, fd := range fds {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, captureBuffer) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, captureBuffer) // what the system allows
		}
	}
	if err := unix.SetNonblock(fds[0], true); err != nil { // so that reading can be ended
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, fmt.Errorf("capture: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "capture"), os.NewFile(uintptr(fds[1]), "capture"), nil
}
