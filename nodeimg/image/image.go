// Package image makes the image of a node: the running program and nothing else, from scratch. A
// Docker Engine keeps it under a prefix of the program's hash, so that nodes of the same program
// share one image, and an unrelated image with that name is not mistaken for it. nodeimg/Dockerfile
// makes the same by hand.
//
// In goes the path of a static binary. Out comes the ID of an image in an engine (Ensure, Load), or
// an archive for docker load (Program.Save). The one idea is that everything follows from the
// binary alone. What Save writes has the same ID on every machine, so that a swarm can name it by
// content.
//
// These must hold. A binary that needs other files is refused. An image counts only if its layer is
// exactly the program. Old images of this package are removed, and no others.
//
// Start reading at Ensure.
package image

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"weft/internal/cleanup"
)

// repository is the name of node images; the tag is the beginning of the program's hash.
const repository = "weft/node"

// keptImages is the number of images of other builds that are kept beside a new one. Ours.
const keptImages = 3

// User is the user of nodes, which owns nothing on any distribution.
const User = "65534:65534"

// Label is the label of node images: the SHA-256 of the program inside, in hexadecimal digits.
const Label = "weft.program"

// Program is a binary as an image holds it.
type Program struct {
	// the image's only layer, a tar archive that depends on nothing but the binary
	Layer []byte
	Hash  string // of the binary, SHA-256 in hexadecimal digits
}

// Ref returns the name of the image with this program.
func (p *Program) Ref() string { return repository + ":" + p.Hash[:16] }

// diffID returns an engine's name for the layer, by its content.
func (p *Program) diffID() string { return fmt.Sprintf("sha256:%x", sha256.Sum256(p.Layer)) }

// Read reads the binary at path and checks that it runs without other files.
func Read(path string) (*Program, error) {
	binary, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("node image: %w", err)
	}
	f, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("node image: %s: %w", path, err)
	}
	for _, part := range f.Progs {
		if part.Type == elf.PT_INTERP {
			return nil, fmt.Errorf("node image: %s needs shared libraries, and the image has none: build it with "+
				"CGO_ENABLED=0 (make build does)", path)
		}
	}
	p := &Program{Hash: fmt.Sprintf("%x", sha256.Sum256(binary))}
	var layer bytes.Buffer
	layer.Grow(len(binary) + 8<<10)
	w := tar.NewWriter(&layer)
	for _, file := range []struct {
		tar.Header
		body []byte
	}{
		{tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}, nil},
		{tar.Header{Name: "weft", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(binary))}, binary},
	} {
		err = errors.Join(err, w.WriteHeader(&file.Header))
		if _, e := w.Write(file.body); err == nil {
			err = e
		}
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("node image: %w", err)
	}
	p.Layer = layer.Bytes()
	return p, nil
}

// Ensure returns the image with the program at path, and makes it if the engine does not have it
// yet.
func Ensure(ctx context.Context, api *client.Client, path string) (string, error) {
	p, err := Read(path)
	if err != nil {
		return "", err
	}
	if id, ok, err := p.Find(ctx, api); err != nil || ok {
		return id, err
	}
	err = Import(ctx, api, p.Layer, p.Ref(), `ENTRYPOINT ["/weft"]`, "USER "+User, "LABEL "+Label+"="+p.Hash)
	if err != nil {
		return "", err
	}
	id, ok, err := p.Find(ctx, api)
	if err == nil && !ok {
		err = fmt.Errorf("node image: what the engine made of %s is not what was imported", p.Ref())
	}
	if err == nil {
		prune(ctx, api, id)
	}
	return id, err
}

// Import makes an image of one layer, with changes in the syntax of a Dockerfile.
func Import(ctx context.Context, api *client.Client, layer []byte, ref string, changes ...string) error {
	body, err := api.ImageImport(ctx, image.ImportSource{Source: bytes.NewReader(layer), SourceName: "-"}, ref,
		image.ImportOptions{
			Message: "weft, made from the running program", Changes: changes,
		})
	if err == nil {
		err = cleanup.Join(complaint(body), body.Close())
	}
	if err != nil {
		return fmt.Errorf("node image: import %s: %w", ref, err)
	}
	return nil
}

// Find looks for an image that holds exactly the program. One that only has its name does not
// count.
func (p *Program) Find(ctx context.Context, api *client.Client) (id string, ok bool, err error) {
	got, err := api.ImageInspect(ctx, p.Ref())
	switch {
	case errdefs.IsNotFound(err):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("node image: %w", err)
	}
	ok = slices.Equal(got.RootFS.Layers, []string{p.diffID()}) && got.Config != nil &&
		got.Config.Labels[Label] == p.Hash
	return got.ID, ok, nil
}

// complaint reads an engine's progress messages to their end, and returns the error among them, if
// any.
func complaint(r io.Reader) error {
	d := json.NewDecoder(r)
	for {
		var line struct {
			Error string `json:"error"`
		}
		err := d.Decode(&line)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case line.Error != "":
			return errors.New(line.Error)
		}
	}
}

// prune removes all but a few unused node images of old builds. Images that the engine refuses to
// remove stay.
func prune(ctx context.Context, api *client.Client, keep string) {
	all, err := nodeImages(ctx, api)
	if err != nil {
		return
	}
	slices.SortFunc(all, func(a, b image.Summary) int { return int(b.Created - a.Created) })
	kept := 0
	for _, i := range all {
		if i.ID == keep {
			continue
		}
		if kept++; kept > keptImages {
			_, _ = api.ImageRemove(ctx, i.ID, image.RemoveOptions{}) // in use, or gone already
		}
	}
}

// nodeImages lists the images of this package, by label and name.
func nodeImages(ctx context.Context, api *client.Client) ([]image.Summary, error) {
	all, err := api.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", Label))})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(i image.Summary) bool {
		return len(i.RepoTags) != 1 || !strings.HasPrefix(i.RepoTags[0], repository+":")
	}), nil
}
