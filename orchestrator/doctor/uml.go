package doctor

import (
	"context"
	"fmt"
	"time"

	"weft/orchestrator/uml"
)

// otherKernel returns the test of User Mode Linux, which serves labs if the machine's kernel lacks
// something.
func otherKernel(o Options) test {
	return test{name: "User Mode Linux", grade: Degraded,
		try: func(ctx context.Context) (string, error) {
			k, err := uml.Find(ctx)
			if err != nil {
				return "", err
			}
			detail := fmt.Sprintf("%s, %s: --kernel uml", k.Release, k.Path)
			if o.BootUML == nil {
				return detail, nil
			}
			took, err := o.BootUML(ctx, k)
			return fmt.Sprintf("%s; boots in %v", detail, took.Round(100*time.Millisecond)), err
		},
		cost: "no --kernel uml; datapath kernel then needs all its qdiscs in this machine's kernel",
		fix:  "sudo apt-get install " + uml.Package,
	}
}
