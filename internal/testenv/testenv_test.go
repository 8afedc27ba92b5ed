package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMainKeepsTestsApartFromTheUser(t *testing.T) {
	user := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", user)
	t.Setenv("GOCACHE", "")
	t.Setenv("WEFT_STATE", filepath.Join(user, "state"))
	t.Setenv("WEFT_OUT", filepath.Join(user, "runs"))
	var dir string
	code := Main(func() int {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Dir(cache)
		for _, name := range []string{"WEFT_STATE", "WEFT_OUT"} {
			if got := filepath.Dir(os.Getenv(name)); got != dir || got == user {
				t.Errorf("%s=%s; want it below %s", name, os.Getenv(name), dir)
			}
		}
		if got, want := os.Getenv("GOCACHE"), filepath.Join(user, "go-build"); got != want {
			t.Errorf("GOCACHE=%s, want %s: builds would begin anew", got, want)
		}
		if err := os.WriteFile(filepath.Join(dir, "left"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return 7
	})
	if code != 7 {
		t.Errorf("code %d, want that of the tests, 7", code)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}
