package image

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/docker/docker/client"
)

// config is the configuration of an image, whose hash is the image's ID: see the OCI image
// specification.
type config struct {
	Architecture string         `json:"architecture"`
	OS           string         `json:"os"`
	Config       settings       `json:"config"`
	RootFS       layers         `json:"rootfs"`
	History      []historyEntry `json:"history"`
}

type settings struct {
	User       string            `json:"User"`
	Entrypoint []string          `json:"Entrypoint"`
	Labels     map[string]string `json:"Labels"`
}

type layers struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type historyEntry struct {
	CreatedBy string `json:"created_by"`
}

// archived is an entry of manifest.json in an archive of docker save.
type archived struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// config returns the configuration of the program's image and its ID. They follow from the program
// alone, so that engines which load it agree on the ID.
func (p *Program) config() (text []byte, id string, err error) {
	text, err = json.Marshal(config{
		Architecture: runtime.GOARCH, OS: "linux",
		Config: settings{User, []string{"/weft"}, map[string]string{Label: p.Hash}},
		RootFS: layers{"layers", []string{p.diffID()}}, History: []historyEntry{{"weft image save"}},
	})
	return text, fmt.Sprintf("sha256:%x", sha256.Sum256(text)), err
}

// ID returns the ID of the program's image once an engine has loaded what Save wrote.
func (p *Program) ID() (string, error) {
	_, id, err := p.config()
	return id, err
}

// SavedRef returns the name of the image that Save writes. Images that an engine of one machine
// makes for nodes have other names, and are removed when there are too many.
func (p *Program) SavedRef() string { return "weft/shard:" + p.Hash[:16] }

// Save writes the program's image as an archive for docker load.
func (p *Program) Save(out io.Writer) error {
	text, id, err := p.config()
	if err != nil {
		return err
	}
	name := id[len("sha256:"):]
	manifest, err := json.Marshal([]archived{{name + ".json", []string{p.SavedRef()}, []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	for _, f := range []struct {
		name string
		body []byte
	}{{"layer.tar", p.Layer}, {name + ".json", text}, {"manifest.json", manifest}} {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: f.name, Typeflag: tar.TypeReg, Mode: 0o644,
			Size: int64(len(f.body))}))
		if _, e := w.Write(f.body); err == nil {
			err = e
		}
	}
	return errors.Join(err, w.Close())
}

// Load makes sure that an engine has the image of the program at path, and returns its ID.
func Load(ctx context.Context, api *client.Client, path string) (string, error) {
	p, err := Read(path)
	if err != nil {
		return "", err
	}
	id, err := p.ID()
	if err != nil {
		return "", err
	}
	if _, err := api.ImageInspect(ctx, id); err == nil {
		return id, nil
	}
	var b bytes.Buffer
	if err := p.Save(&b); err != nil {
		return "", err
	}
	answer, err := api.ImageLoad(ctx, &b)
	if err != nil {
		return "", fmt.Errorf("node image: %w", err)
	}
	if err := errors.Join(complaint(answer.Body), answer.Body.Close()); err != nil {
		return "", fmt.Errorf("node image: %w", err)
	}
	if _, err := api.ImageInspect(ctx, id); err != nil {
		return "", fmt.Errorf("node image: what the engine loaded is not what was sent: %w", err)
	}
	return id, nil
}
