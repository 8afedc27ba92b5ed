package launcher

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// torchPort is the port of the first rank's store: torchrun's own default.
const torchPort = 29500

// kinds has every kind of launcher, first the one that tells programs nothing.
var kinds = []Kind{
	{name: "none"},
	{name: "torchrun", Environment: torchrun, Replaces: []string{"torchrun"}},
	{name: "mpich", Environment: overTCP, Leader: mpich, Ask: askedByHydra,
		Talk: func(line string) bool { return strings.HasPrefix(line, hydraPrefix) },
		Late: `a program of another MPI needs that one's --launch; MPICH before 4.2 may stay in MPI_Finalize ` +
			`over TCP: see "MPICH" in docs/applications.md`,
		Replaces: []string{"mpirun", "mpiexec", "mpiexec.hydra"}, Program: "mpiexec.hydra", Package: "mpich"},
	{name: "openmpi", Environment: openMPI, Leader: orterun, Ask: askedByORTE,
		Replaces: []string{"mpirun", "mpiexec", "orterun"}, Program: "orterun", Package: "openmpi-bin"},
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

// mpich runs Hydra, the launcher of MPICH, which prints the proxies that it wants instead of
// starting them (-launcher manual):
//
//	HYDRA_LAUNCH: /usr/bin/hydra_pmi_proxy --control-port h0:41873 ... --proxy-id 1
//	HYDRA_LAUNCH_END
func mpich(program, hosts []string) []string {
	return slices.Concat([]string{"mpiexec.hydra", "-launcher", "manual", "-iface", "eth0", "-hosts",
		strings.Join(hosts, ","), "-ppn", "1", "-n", strconv.Itoa(len(hosts))}, program)
}

// hydraPrefix begins each line of Hydra's protocol.
const hydraPrefix = "HYDRA_LAUNCH"

// askedByHydra reads a line of Hydra.
func askedByHydra(line string, hosts []string) (a Asked, ok bool) {
	rest, ok := strings.CutPrefix(line, hydraPrefix+": ")
	if !ok {
		return Asked{}, false
	}
	a = Asked{Rank: -1, Args: strings.Fields(rest)}
	if i := slices.Index(a.Args, "--proxy-id"); i >= 0 && i+1 < len(a.Args) {
		if n, err := strconv.Atoi(a.Args[i+1]); err == nil && n >= 0 && n < len(hosts) {
			a.Rank = n
		}
	}
	return a, true
}

// overTCP are the settings by which MPICH uses the lab's network and nothing else.
func overTCP(int, []string) []string { return []string{"UCX_TLS=tcp,self", "UCX_NET_DEVICES=eth0"} }

// orterun runs the launcher of Open MPI 4, which believes that echo is ssh: for each other host, a
// line has the host and a command for a shell.
//
//	WEFT_LAUNCH h1 ( test ! -r ./.profile || . ./.profile; orted -mca ess "env" ... )
func orterun(program, hosts []string) []string {
	return slices.Concat([]string{"orterun", "--host", strings.Join(hosts, ":1,") + ":1", "-n",
		strconv.Itoa(len(hosts))}, program)
}

// ortePrefix begins each line with which Open MPI asks.
const ortePrefix = "WEFT_LAUNCH "

// openMPI are the settings by which Open MPI asks for its daemons, all from the first host, and
// uses the lab's network and nothing else. It polls, and yields the processor between, since hosts
// share processors.
func openMPI(int, []string) []string {
	return []string{
		"OMPI_MCA_plm=rsh", "OMPI_MCA_plm_rsh_agent=echo " + strings.TrimSpace(ortePrefix),
		"OMPI_MCA_plm_rsh_no_tree_spawn=1",
		"OMPI_MCA_orte_leave_session_attached=1", "OMPI_MCA_oob_tcp_if_include=eth0", "OMPI_MCA_pml=ob1",
		"OMPI_MCA_btl=tcp,self", "OMPI_MCA_btl_tcp_if_include=eth0", "OMPI_MCA_hwloc_base_binding_policy=none",
		"OMPI_MCA_mpi_yield_when_idle=1", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
	}
}

// askedByORTE reads a line of orterun.
func askedByORTE(line string, hosts []string) (a Asked, ok bool) {
	rest, ok := strings.CutPrefix(line, ortePrefix)
	if !ok {
		return Asked{}, false
	}
	host, command, _ := strings.Cut(rest, " ")
	return Asked{Rank: slices.Index(hosts, host), Args: []string{"/bin/sh", "-c", command}}, true
}
