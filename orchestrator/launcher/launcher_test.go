package launcher

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/internal/fuzztest"
)

var hosts = []string{"h2", "h0", "h1"}

func TestTorchrun(t *testing.T) {
	env := Of("torchrun").Environment(1, hosts)
	for _, want := range []string{"RANK=1", "WORLD_SIZE=3", "MASTER_ADDR=h2", "MASTER_PORT=29500", "GLOO_SOCKET_IFNAME=eth0"} {
		if !slices.Contains(env, want) {
			t.Errorf("no %s in %q", want, env)
		}
	}
	if k := Of(Default()); k.Environment != nil || k.Leader != nil || Of("rockets") != nil || k.Name() != Names()[0] {
		t.Errorf("%+v", k)
	}
}

// Hydra's lines, as it prints them, ask for proxies by the number of the host.
func TestHydra(t *testing.T) {
	k := Of("mpich")
	if got := strings.Join(k.Leader([]string{"prog", "x y"}, hosts), "|"); got !=
		"mpiexec.hydra|-launcher|manual|-iface|eth0|-hosts|h2,h0,h1|-ppn|1|-n|3|prog|x y" {
		t.Error(got)
	}
	for line, want := range map[string]string{
		"HYDRA_LAUNCH: /usr/bin/hydra_pmi_proxy --control-port 10.0.0.1:33561 --rmk user --usize -2 --proxy-id 2": "true true 2 /usr/bin/hydra_pmi_proxy",
		"HYDRA_LAUNCH: /usr/bin/hydra_pmi_proxy --proxy-id 3":                                                     "true true -1 /usr/bin/hydra_pmi_proxy",
		"HYDRA_LAUNCH: /usr/bin/hydra_pmi_proxy --proxy-id":                                                       "true true -1 /usr/bin/hydra_pmi_proxy",
		"HYDRA_LAUNCH_END":       "false true 0 ",
		"4096 B 12 us":           "false false 0 ",
		" HYDRA_LAUNCH: in text": "false false 0 ",
	} {
		a, ok := k.Ask(line, hosts)
		if got := fmt.Sprint(ok, k.Talk(line), a.Rank, " ", strings.Join(a.Args[:min(len(a.Args), 1)], "")); strings.Join(strings.Fields(got), " ") != strings.TrimSpace(want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// Lines of orterun, as it prints them, ask for daemons by the name of the host.
func TestOpenMPI(t *testing.T) {
	k := Of("openmpi")
	if got := strings.Join(k.Leader([]string{"prog", "x y"}, hosts), "|"); got !=
		"orterun|--host|h2:1,h0:1,h1:1|-n|3|prog|x y" {
		t.Error(got)
	}
	for line, want := range map[string]string{
		`WEFT_LAUNCH h1 ( orted -mca ess "env" )`: `true 2 /bin/sh|-c|( orted -mca ess "env" )`,
		"WEFT_LAUNCH h9 true":                     "true -1 /bin/sh|-c|true",
		"4096 B 12 us":                            "false 0 ",
	} {
		a, ok := k.Ask(line, hosts)
		if got := fmt.Sprint(ok, a.Rank, " ", strings.Join(a.Args, "|")); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// Whatever a launcher prints, it asks for a program on one of its hosts, or on none.
func FuzzAsk(f *testing.F) {
	corpus := fuzztest.New(f)
	for _, line := range []string{"HYDRA_LAUNCH: p --proxy-id 1", "HYDRA_LAUNCH: p --proxy-id -1", "HYDRA_LAUNCH: ", "WEFT_LAUNCH h1 true", "WEFT_LAUNCH ", "x"} {
		corpus.Add(line)
	}
	corpus.Fuzz(func(t *testing.T, line string) {
		for _, name := range Names() {
			if k := Of(name); k.Ask != nil {
				if a, _ := k.Ask(line, hosts); a.Rank < -1 || a.Rank >= len(hosts) {
					t.Errorf("%s: %q asks for a program on host %d", name, line, a.Rank)
				}
			}
		}
	})
}
