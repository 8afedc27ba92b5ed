package deploy

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
)

// assignSubnet gives a lab a subnet that no other lab of the state directory has. It calls keep,
// which must write the subnet to the lab's folder, while it holds a lock against other assignments.
// A lab that has crashed keeps its subnet until it is taken down.
func (r *Root) assignSubnet(name string, keep func(topology.Subnet) error) error {
	dir, err := r.dir.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close() // releases the lock
	if err := flock(dir); err != nil {
		return fmt.Errorf("assign a subnet: %w", err)
	}
	s, err := r.freeSubnet(name)
	if err != nil {
		return err
	}
	return keep(s)
}

// freeSubnet returns the lowest subnet that no other lab has.
func (r *Root) freeSubnet(name string) (topology.Subnet, error) {
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
	return 0, fmt.Errorf("all %d subnets are in use by other labs; weft destroy frees one", topology.MaxSubnets)
}

// SubnetOf returns the subnet that a deployment of the lab would get now. If the same lab is up, on
// this machine or on others (Request.On), up says that Up would do nothing and what was changed in
// it, and s is the subnet that it has; otherwise up is nil.
func SubnetOf(path string, l *lab.Lab, on string) (s topology.Subnet, up *Change, err error) {
	if _, err := os.Lstat(path); missing(err) {
		return 1, nil, nil
	}
	r, err := OpenRoot(path)
	if err != nil {
		return 0, nil, err
	}
	defer r.Close()
	c, err := r.plan(l, &Request{On: on})
	if err != nil {
		return 0, nil, err
	}
	if c.Action == ActionNone {
		return c.Deployment.Subnet, c, nil
	}
	s, err = r.freeSubnet(l.Name)
	return s, nil, err
}

// subnetOf returns the subnet of a lab, or 0 if there is no lab of that name or its files cannot be
// read.
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

// flock locks a directory, and waits for the lock. Others hold it only while they write two files.
func flock(dir *os.File) error {
	for {
		if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}
