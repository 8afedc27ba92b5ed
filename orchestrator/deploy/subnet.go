package deploy

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"weft/orchestrator/topology"
)

// choose gives a lab a subnet that no other lab of the state directory has, and calls keep, which must note it in the
// lab's folder. Meanwhile nobody else chooses. A lab that has crashed keeps its subnet until it is taken down.
func (r *Root) choose(name string, keep func(topology.Subnet) error) error {
	dir, err := r.dir.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close() // and with it the lock
	if err := flock(dir); err != nil {
		return fmt.Errorf("choose a subnet: %w", err)
	}
	labs, err := r.Labs()
	if err != nil {
		return err
	}
	taken := map[topology.Subnet]bool{}
	for _, other := range labs {
		if other != name {
			taken[r.subnetOf(other)] = true
		}
	}
	for s := topology.Subnet(1); s <= topology.MaxSubnets; s++ {
		if !taken[s] {
			return keep(s)
		}
	}
	return fmt.Errorf("all %d subnets are taken by other labs; weft destroy gives theirs back", topology.MaxSubnets)
}

// subnetOf is the subnet of a lab; 0 where there is no lab, or none that can be read.
func (r *Root) subnetOf(name string) topology.Subnet {
	dir, err := r.dir.OpenRoot(name)
	if err != nil {
		return 0
	}
	defer dir.Close()
	d, err := readDeployment(dir)
	if err != nil {
		return 0
	}
	return d.Subnet
}

// flock waits for the lock of a directory: for as long as it takes to write two files.
func flock(dir *os.File) error {
	for {
		if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}
