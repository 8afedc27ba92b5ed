package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
)

// An archive holds the program, and its ID is the hash of the configuration in it, whatever machine
// wrote it.
func TestSave(t *testing.T) {
	p := &Program{Layer: []byte("a layer"), Hash: fmt.Sprintf("%x", sha256.Sum256([]byte("weft")))}
	var first, second bytes.Buffer
	if err := errors.Join(p.Save(&first), p.Save(&second)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two archives differ")
	}
	files := map[string][]byte{}
	r := tar.NewReader(&first)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	var m []archived
	if err := json.Unmarshal(files["manifest.json"], &m); err != nil || len(m) != 1 || m[0].RepoTags[0] != p.SavedRef() {
		t.Fatalf("%+v, %v", m, err)
	}
	id, err := p.ID()
	text := files[m[0].Config]
	if err != nil || id != fmt.Sprintf("sha256:%x", sha256.Sum256(text)) {
		t.Errorf("ID %s, %v", id, err)
	}
	var c config
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256(files[m[0].Layers[0]])); c.RootFS.DiffIDs[0] != want || c.Config.User != User {
		t.Errorf("%+v, want layer %s", c, want)
	}
}
