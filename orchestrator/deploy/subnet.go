package deploy

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"weft/orchestrator/lab"
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
	s, err := r.free(name)
	if err != nil {
		return err
	}
	return keep(s)
}

// free returns the least subnet that no other lab has.
func (r *Root) free(name string) (topology.Subnet, error) {
	labs, err := r.Labs()
	if err != nil {
		return 0, err
	}
	taken := map[topology.Subnet]bool{}
	for _, other := range labs {
		if other != name {
			taken[r.subnetOf(other)] = true
		}
	}
	for s := topology.Subnet(1); s <= topology.MaxSubnets; s++ {
		if !taken[s] {
			return s, nil
		}
	}
	return 0, fmt.Errorf("all %d subnets are taken by other labs; weft destroy gives theirs back", topology.MaxSubnets)
}

// SubnetOf returns the subnet that deploying a lab now would give it. A lab that is up as it is keeps its own.
func SubnetOf(path string, l *lab.Lab) (s topology.Subnet, up bool, err error) {
	if _, err := os.Lstat(path); missing(err) {
		return 1, false, nil
	}
	r, err := OpenRoot(path)
	if err != nil {
		return 0, false, err
	}
	defer r.Close()
	c, err := r.plan(l)
	if err != nil {
		return 0, false, err
	}
	if c.Action == ActionNone {
		return c.Deployment.Subnet, true, nil
	}
	s, err = r.free(l.Name)
	return s, false, err
}

// subnetOf is the subnet of a lab; 0 where there is no lab, or none that can be read.
func (r *Root) subnetOf(name string) topology.Subnet {
	dir, err := r.folder(name)
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
