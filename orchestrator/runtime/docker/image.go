package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"golang.org/x/sys/unix"

	"weft/nodeimg/labclock"
	"weft/orchestrator/runtime"
)

// The folder of a holder, a volume, and the holder in it.
const (
	holderFolder = "/.weft"
	holderFile   = "hold"
)

// waits is the machine code of a program that waits for signals for ever.
var waits = map[string][]byte{
	"amd64": {
		0xb8, 34, 0, 0, 0, // mov eax, pause
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // jmp to the first
	},
	"arm64": {
		0x00, 0x00, 0x80, 0xd2, // mov x0, 0
		0x01, 0x00, 0x80, 0xd2, // mov x1, 0
		0x02, 0x00, 0x80, 0xd2, // mov x2, 0
		0x03, 0x00, 0x80, 0xd2, // mov x3, 0
		0x28, 0x09, 0x80, 0xd2, // mov x8, ppoll
		0x01, 0x00, 0x00, 0xd4, // svc 0
		0xfa, 0xff, 0xff, 0x17, // b to the first
	},
}

// holder returns an archive with a program that waits, and needs no file of an image. It is the
// first process of a container: the engine sets up the image's files, user and variables for it,
// and the program is then started beside it.
func holder() ([]byte, error) {
	code, ok := waits[goruntime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("programs of images cannot run on %s", goruntime.GOARCH)
	}
	const at = 0x10000
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[goruntime.GOARCH]
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB),
			byte(elf.EV_CURRENT)},
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Ehsize: 64, Phoff: 64, Phentsize: 56, Phnum: 1, Entry: at + 64 + 56,
	}
	size := header.Entry - at + uint64(len(code))
	load := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: at, Paddr: at,
		Filesz: size, Memsz: size, Align: 0x1000}
	var program, archive bytes.Buffer
	for _, part := range []any{&header, &load, code} {
		if err := binary.Write(&program, binary.LittleEndian, part); err != nil {
			return nil, err
		}
	}
	w := tar.NewWriter(&archive)
	err := w.WriteHeader(&tar.Header{Name: holderFile, Mode: 0o755, Size: int64(program.Len())})
	if err == nil {
		_, err = w.Write(program.Bytes())
	}
	return archive.Bytes(), errors.Join(err, w.Close())
}

// execImage runs a program of an image: in a container of its own with the image's files,
// read-only, and its user and variables, and in the node's network and PID namespaces. Only the
// holder is started by the engine; see runtime.Inside.
func (c *Cluster) execImage(ctx context.Context, p *proc, command runtime.Command) error {
	if err := c.engine.checkImages(ctx, []string{command.Image}); err != nil {
		return err
	}
	image, err := c.engine.api.ImageInspect(ctx, command.Image)
	if err != nil {
		return fmt.Errorf("image %s: %w", command.Image, err)
	}
	if image.Config != nil {
		if len(command.Args) == 0 {
			command.Args = image.Config.Cmd
		}
		command.Args = slices.Concat(image.Config.Entrypoint, command.Args)
	}
	archive, err := holder()
	if err != nil {
		return err
	}
	host := c.hostConfig()
	host.NetworkMode = container.NetworkMode("container:" + p.container)
	host.PidMode = container.PidMode("container:" + p.container) // it ends with the node
	host.Tmpfs["/run"] = host.Tmpfs["/tmp"]
	config := &container.Config{
		Image: command.Image, Entrypoint: []string{holderFolder + "/" + holderFile}, Env: command.Env,
		WorkingDir: command.Dir, Labels: c.labels(p.Name), Volumes: map[string]struct{}{holderFolder: {}},
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}
	made, err := c.engine.api.ContainerCreate(ctx, config, host, &network.NetworkingConfig{}, nil, "")
	if err != nil {
		return fmt.Errorf("create container of %s: %w", command.Image, err)
	}
	defer c.discard(made.ID)
	err = c.engine.api.CopyToContainer(ctx, made.ID, holderFolder, bytes.NewReader(archive),
		container.CopyToContainerOptions{})
	if err != nil {
		return fmt.Errorf("copy to container of %s: %w", command.Image, err)
	}
	pid, pidfd, err := c.startContainer(ctx, made.ID)
	if err != nil {
		return fmt.Errorf("%s: %w", command.Image, err)
	}
	defer unix.Close(pidfd)
	beside := &proc{Proc: runtime.Proc{Name: p.Name, PID: pid}, container: made.ID, pidfd: pidfd}
	if err := beside.awaitHolder(ctx); err != nil {
		return fmt.Errorf("%s: %w", command.Image, err)
	}
	groups, err := beside.groups()
	if err != nil {
		return err
	}
	inside := runtime.Inside{PID: pid, Enter: beside.enterWhole, Image: true, Memory: c.spec.Memory, Groups: groups,
		Keeper: func() (*labclock.Keeper, error) { return c.Keeper(&c.spec) }}
	if err = inside.Run(ctx, command); ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// awaitHolder returns when the container's first process is the holder. The engine says that a
// container has started a little before: until then the process is the engine's, without the
// image's files and variables.
func (p *proc) awaitHolder(ctx context.Context) error {
	for {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		if err != nil || p.ended() {
			return errors.New("the container ended before the program could be started")
		}
		// the kernel shows variables last
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID))
		if err == nil && len(env) > 0 && string(args) == holderFolder+"/"+holderFile+"\x00" {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// enterWhole moves the calling thread into every namespace of p.
func (p *proc) enterWhole() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // root and working directory are shared by all threads
		return err
	}
	return unix.Setns(p.pidfd, unix.CLONE_NEWNS|unix.CLONE_NEWNET|unix.CLONE_NEWPID|unix.CLONE_NEWUTS|unix.CLONE_NEWIPC)
}
