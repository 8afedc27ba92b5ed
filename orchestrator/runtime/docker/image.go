package docker

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
	"regexp"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"weft/internal/cleanup"
)

// repository is the name of node images; the tag is the beginning of the program's hash.
const repository = "weft/node"

// keptImages is how many images of other builds are kept beside a new one. Ours.
const keptImages = 3

// nobody is the user that nodes run as: it owns nothing, on every distribution.
const nobody = "65534:65534"

// program is a binary as it lies in an image.
type program struct {
	layer []byte // the image's only layer, a tar archive that depends on nothing but the binary
	hash  string // of the binary, SHA-256 in hexadecimal digits
}

// ref is the name of the image with this program.
func (p *program) ref() string { return repository + ":" + p.hash[:16] }

// diffID is how an engine names the layer: by its content.
func (p *program) diffID() string { return fmt.Sprintf("sha256:%x", sha256.Sum256(p.layer)) }

// read reads the binary at path and checks that it can run where there is nothing else.
func read(path string) (*program, error) {
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
			return nil, fmt.Errorf("node image: %s needs shared libraries, and the image has none: build it with CGO_ENABLED=0 (make build does)", path)
		}
	}
	p := &program{hash: fmt.Sprintf("%x", sha256.Sum256(binary))}
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
	p.layer = layer.Bytes()
	return p, nil
}

// nodeImage returns the image with the program at path, made if the engine does not have it yet.
func (e *engine) nodeImage(ctx context.Context, path string) (string, error) {
	p, err := read(path)
	if err != nil {
		return "", err
	}
	if id, ok, err := e.find(ctx, p); err != nil || ok {
		return id, err
	}
	body, err := e.api.ImageImport(ctx, image.ImportSource{Source: bytes.NewReader(p.layer), SourceName: "-"}, p.ref(), image.ImportOptions{
		Message: "weft, made from the running program",
		Changes: []string{`ENTRYPOINT ["/weft"]`, "USER " + nobody, "LABEL " + labelImage + "=" + p.hash},
	})
	if err == nil {
		err = cleanup.Join(complaint(body), body.Close())
	}
	if err != nil {
		return "", fmt.Errorf("node image: import %s: %w", p.ref(), err)
	}
	id, ok, err := e.find(ctx, p)
	if err == nil && !ok {
		err = fmt.Errorf("node image: what the engine made of %s is not what was imported", p.ref())
	}
	if err == nil {
		e.prune(ctx, id)
	}
	return id, err
}

// find looks for an image that holds exactly the program. One that only has its name does not count.
func (e *engine) find(ctx context.Context, p *program) (id string, ok bool, err error) {
	got, err := e.api.ImageInspect(ctx, p.ref())
	switch {
	case errdefs.IsNotFound(err):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("node image: %w", err)
	}
	ok = slices.Equal(got.RootFS.Layers, []string{p.diffID()}) && got.Config != nil && got.Config.Labels[labelImage] == p.hash
	return got.ID, ok, nil
}

// complaint reads an engine's progress messages to their end, and returns the error among them if there is one.
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

// prune removes node images of old builds that nothing uses, but for a few. What the engine will not remove stays.
func (e *engine) prune(ctx context.Context, keep string) {
	all, err := e.nodeImages(ctx)
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
			_, _ = e.api.ImageRemove(ctx, i.ID, image.RemoveOptions{}) // in use, or gone already
		}
	}
}

// nodeImages lists the images that this package made, by label and name both.
func (e *engine) nodeImages(ctx context.Context) ([]image.Summary, error) {
	all, err := e.api.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labelImage))})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(i image.Summary) bool {
		return len(i.RepoTags) != 1 || !strings.HasPrefix(i.RepoTags[0], repository+":")
	}), nil
}

// imageName is what the name of an image may look like: it becomes part of a request's path.
var imageName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._/:@-]{0,254}$`)

// have makes sure that images which programs of the lab need are there.
func (e *engine) have(ctx context.Context, images []string) error {
	for _, name := range images {
		if !imageName.MatchString(name) || strings.Contains(name, "..") {
			return fmt.Errorf("%q is not the name of an image; expected one such as alpine:3", name)
		}
		_, err := e.api.ImageInspect(ctx, name)
		if errdefs.IsNotFound(err) {
			return fmt.Errorf("the engine at %s does not have the image %s: docker pull %s, or build or import it", e.host, name, name)
		}
		if err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
	}
	return nil
}
