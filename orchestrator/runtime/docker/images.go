package docker

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/containerd/errdefs"
)

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
