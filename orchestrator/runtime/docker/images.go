package docker

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/containerd/errdefs"
)

// imageName matches valid names of images, which become part of a request's path.
var imageName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._/:@-]{0,254}$`)

// checkImages returns an error unless the engine has all images.
func (e *engine) checkImages(ctx context.Context, images []string) error {
	for _, name := range images {
		if !imageName.MatchString(name) || strings.Contains(name, "..") {
			return fmt.Errorf("%q is not the name of an image; expected one such as alpine:3", name)
		}
		_, err := e.api.ImageInspect(ctx, name)
		if errdefs.IsNotFound(err) {
			return fmt.Errorf("the engine at %s does not have the image %s: docker pull %s, or build or import it",
				e.host, name, name)
		}
		if err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
	}
	return nil
}
