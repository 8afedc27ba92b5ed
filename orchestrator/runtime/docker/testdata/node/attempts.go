package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// attempts tries what a malicious node might try, and returns the results.
func attempts() json.RawMessage {
	got := map[string]string{}
	note := func(what string, err error) {
		got[what] = "done"
		if err != nil {
			got[what] = err.Error()
		}
	}
	note("write /weft", os.WriteFile("/weft", nil, 0o755))
	note("write /x", os.WriteFile("/x", nil, 0o644))
	note("write /etc/hosts", os.WriteFile("/etc/hosts", nil, 0o644))
	note("write /proc/sys", os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0))
	note("write /tmp/x", os.WriteFile("/tmp/x", []byte("x"), 0o644))
	note("mount", unix.Mount("none", "/tmp", "tmpfs", 0, ""))
	note("unshare", unix.Unshare(unix.CLONE_NEWNET))
	note("user namespace", unix.Unshare(unix.CLONE_NEWUSER))
	note("become root", unix.Setuid(0))
	note("mknod", unix.Mknod("/tmp/disk", unix.S_IFBLK|0o600, 254<<8))
	note("reboot", unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_OFF))
	_, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	note("raw socket", err)
	_, err = os.Open("/dev/net/tun")
	note("open tun", err)
	_, err = net.Dial("udp", "192.0.2.1:9")
	note("route out", err)
	_, err = net.Dial("unix", "/var/run/docker.sock")
	note("engine", err)
	_, err = net.Dial("unix", "@weft/control")
	note("control again", err)
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(status)) {
			if name, value, ok := strings.Cut(line, ":"); ok &&
				(strings.HasPrefix(name, "Cap") || name == "NoNewPrivs" || name == "Seccomp" || name == "Uid") {
				got[name] = strings.Join(strings.Fields(value), " ")
			}
		}
	}
	links, err := net.Interfaces()
	got["interfaces"] = fmt.Sprint(err)
	if err == nil {
		names := []string{}
		for _, l := range links {
			names = append(names, l.Name)
		}
		got["interfaces"] = strings.Join(names, " ")
	}
	root, _ := os.ReadDir("/")
	names := []string{}
	for _, f := range root {
		names = append(names, f.Name())
	}
	got["root"] = strings.Join(names, " ")
	got["pid"] = fmt.Sprint(os.Getpid())
	text, _ := json.Marshal(got)
	return text
}
