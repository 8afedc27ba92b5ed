package launcher

import "fmt"

// torchPort is the port of the first rank's store: torchrun's own default.
const torchPort = 29500

// kinds has every kind of launcher, first the one that tells programs nothing.
var kinds = []Kind{
	{name: "none"},
	{name: "torchrun", Environment: torchrun},
}

// torchrun returns the environment of a rank; see
// https://pytorch.org/docs/stable/elastic/run.html#environment-variables.
func torchrun(rank int, hosts []string) []string {
	return []string{
		fmt.Sprintf("RANK=%d", rank), fmt.Sprintf("WORLD_SIZE=%d", len(hosts)), "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1",
		fmt.Sprintf("GROUP_RANK=%d", rank), fmt.Sprintf("GROUP_WORLD_SIZE=%d", len(hosts)),
		"MASTER_ADDR=" + hosts[0], fmt.Sprintf("MASTER_PORT=%d", torchPort),
		"GLOO_SOCKET_IFNAME=eth0", "OMP_NUM_THREADS=1",
	}
}
