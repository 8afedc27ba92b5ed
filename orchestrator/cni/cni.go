// Package cni is a CNI plugin: it attaches containers that other programs start to hosts of
// deployed labs.
//
//	CNI runtime --ADD, network configuration--> Main --deploy.Attach--> the lab's supervisor
//	            <---the host's addresses------
//
// The lab's supervisor does the work in one request, and the kernel keeps the result: an interface
// that is gone with the container or with the host. So the plugin has no files and no state, and
// may be killed at any instant. The addresses are those of the host; there is no IPAM plugin.
//
// Start reading at Main. The protocol is https://www.cni.dev/docs/spec/.
package cni

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"weft/orchestrator/deploy"
)

// Program is the name under which CNI runtimes find this plugin in their folder of plugins.
const Program = "weft-cni"

// Example is a network configuration: containers get the hosts of the only lab, one after another.
const Example = `{"cniVersion": "1.0.0", "name": "weft", "plugins": [{"type": "` + Program + `"}]}
`

// Error codes of this plugin beside those of the specification, which leaves it those from 100.
const (
	errNoLab = 100 + iota // no such lab is deployed, or it does not work
	errTaken              // the host is another container's, or not running
)

// errNotAvailable is the specification's code for STATUS: the plugin cannot serve ADD.
const errNotAvailable = 50

// config is the network configuration.
type config struct {
	types.NetConf
	Lab   string `json:"lab"`   // empty: the only one that is deployed
	Host  string `json:"host"`  // empty: the first that is free
	State string `json:"state"` // the state directory; empty: this user's
	Args  struct {
		CNI struct {
			Host string `json:"host"` // as Host, for one container
		} `json:"cni"`
	} `json:"args"`
}

// args are the keys of CNI_ARGS. Runtimes add arguments of their own.
type args struct {
	types.CommonArgs
	WEFT_HOST types.UnmarshallableString
}

// Main carries out the request of a CNI runtime, which is in the environment and on standard input,
// and returns the exit code.
func Main() int {
	err := skel.PluginMainFuncsWithError(skel.CNIFuncs{
		Add: add, Check: check, Del: del, GC: collect, Status: status,
	}, version.PluginSupports("0.3.1", "0.4.0", "1.0.0", "1.1.0"),
		"weft-cni attaches containers to hosts of labs that weft deploy brought up.")
	if err == nil {
		return 0
	}
	if err := err.Print(); err != nil {
		fmt.Fprintln(os.Stderr, "weft-cni:", err)
	}
	return 1
}

// request is one call of the plugin.
type request struct {
	config
	holder deploy.Holder
}

// read returns the request that a runtime made.
func read(a *skel.CmdArgs) (*request, error) {
	r := &request{holder: deploy.Holder{Container: a.ContainerID, Interface: a.IfName}}
	if err := json.Unmarshal(a.StdinData, &r.config); err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, "network configuration: "+err.Error(), "")
	}
	r.holder.Network = r.Name
	known := args{CommonArgs: types.CommonArgs{IgnoreUnknown: true}}
	if err := types.LoadArgs(a.Args, &known); err != nil {
		return nil, types.NewError(types.ErrInvalidEnvironmentVariables, "CNI_ARGS: "+err.Error(), "")
	}
	r.Host = cmp.Or(string(known.WEFT_HOST), r.Args.CNI.Host, r.Host)
	if r.IPAM.Type != "" {
		return nil, types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf(
			"ipam: the lab gives addresses; leave out %q", r.IPAM.Type), "")
	}
	return r, nil
}

// errNotDeployed is why a lab cannot be reached that does not exist.
var errNotDeployed = errors.New("no lab is deployed; weft deploy LAB brings one up")

// do calls f with the lab of the request.
func (r *request) do(f func(*deploy.Handle) error) error {
	dir := cmp.Or(r.State, deploy.DefaultRoot(os.Geteuid()))
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return errNotDeployed
	}
	root, err := deploy.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	name := r.Lab
	if name == "" {
		labs, err := root.Labs()
		if err != nil {
			return err
		}
		if len(labs) == 0 {
			return errNotDeployed
		}
		if len(labs) > 1 {
			return fmt.Errorf(`%d labs are deployed: %s; name one with "lab" in the network configuration`, len(labs),
				strings.Join(labs, ", "))
		}
		name = labs[0]
	}
	h, err := deploy.Open(root, name)
	if err != nil {
		return err
	}
	return f(h)
}

// failed returns an error of do with its code.
func failed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNotDeployed), errors.Is(err, deploy.ErrNotDeployed), errors.Is(err, deploy.ErrCrashed):
		return types.NewError(errNoLab, err.Error(), "")
	case errors.As(err, new(deploy.Taken)):
		return types.NewError(errTaken, err.Error(), "")
	}
	return types.NewError(types.ErrInternal, err.Error(), "")
}

func add(a *skel.CmdArgs) error {
	r, err := read(a)
	if err != nil {
		return err
	}
	var is deploy.Attached
	err = r.do(func(h *deploy.Handle) error {
		is, err = h.Attach(deploy.Attach{Holder: r.holder, Host: r.Host}, a.Netns)
		return err
	})
	if err != nil {
		return failed(err)
	}
	return types.PrintResult(result(&is, a), r.CNIVersion)
}

// result returns the answer to the container's runtime.
func result(is *deploy.Attached, a *skel.CmdArgs) *types100.Result {
	out := &types100.Result{
		CNIVersion: types100.ImplementedSpecVersion,
		Interfaces: []*types100.Interface{{Name: a.IfName, Mac: is.MAC, Sandbox: a.Netns}},
		IPs:        []*types100.IPConfig{{Interface: types100.Int(0), Address: ipNet(is.Address)}},
	}
	for _, r := range is.Routes {
		route := &types.Route{Dst: ipNet(r.To)}
		if r.Via.IsValid() {
			route.GW = r.Via.AsSlice()
		}
		out.Routes = append(out.Routes, route)
	}
	return out
}

func ipNet(p netip.Prefix) net.IPNet {
	return net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}
}

func check(a *skel.CmdArgs) error {
	r, err := read(a)
	if err != nil {
		return err
	}
	return failed(r.do(func(h *deploy.Handle) error {
		_, err := h.Attach(deploy.Attach{Holder: r.holder, Check: true}, a.Netns)
		return err
	}))
}

// del succeeds if the lab is gone: the container's interface is gone with it.
func del(a *skel.CmdArgs) error {
	r, err := read(a)
	if err != nil {
		return err
	}
	return failed(r.onExisting(func(h *deploy.Handle) error {
		return h.Detach(deploy.Detach{Holder: r.holder}, a.Netns)
	}))
}

// onExisting is do for what is done already if the lab is gone.
func (r *request) onExisting(f func(*deploy.Handle) error) error {
	err := r.do(f)
	if errors.Is(err, errNotDeployed) || errors.Is(err, deploy.ErrNotDeployed) || errors.Is(err, deploy.ErrCrashed) {
		return nil
	}
	return err
}

// collect takes hosts back from containers of this network that the runtime does not know any more.
func collect(a *skel.CmdArgs) error {
	r, err := read(a)
	if err != nil {
		return err
	}
	return failed(r.onExisting(func(h *deploy.Handle) error {
		s, err := h.State()
		if err != nil {
			return err
		}
		for i := range s.Nodes {
			k := s.Nodes[i].Holder
			is := types.GCAttachment{ContainerID: k.Container, IfName: k.Interface}
			if k.Network != r.Name || slices.Contains(r.ValidAttachments, is) {
				continue
			}
			if err := h.Detach(deploy.Detach{Holder: k}, ""); err != nil {
				return err
			}
		}
		return nil
	}))
}

// status succeeds if the lab is up, with at least one host that runs.
func status(a *skel.CmdArgs) error {
	r, err := read(a)
	if err != nil {
		return err
	}
	err = r.do(func(h *deploy.Handle) error {
		s, err := h.State()
		runs := func(n deploy.NodeState) bool { return n.MAC != "" && n.State == "running" } // switches have no MAC
		switch {
		case err != nil:
			return err
		case s.Broken != "":
			return fmt.Errorf("lab %s: %s", s.Lab, s.Broken)
		case !slices.ContainsFunc(s.Nodes, runs):
			return fmt.Errorf("lab %s: no host runs; weft node %[1]s HOST restart starts one again", s.Lab)
		}
		return nil
	})
	if err != nil {
		return types.NewError(errNotAvailable, err.Error(), "")
	}
	return nil
}
