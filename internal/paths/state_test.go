package paths

import (
	"path/filepath"
	"testing"
)

func TestUserState(t *testing.T) {
	root := t.TempDir()
	for _, c := range []struct {
		system string
		env    map[string]string
		want   string // "" is an error
	}{
		{"linux", map[string]string{"HOME": root}, filepath.Join(root, ".local", "state", "muster")},
		{"linux", map[string]string{"HOME": "/elsewhere", "XDG_STATE_HOME": root}, filepath.Join(root, "muster")},
		{"linux", map[string]string{"HOME": root, "XDG_STATE_HOME": "relative"}, filepath.Join(root, ".local", "state", "muster")},
		{"darwin", map[string]string{"HOME": root}, filepath.Join(root, "Library", "Application Support", "muster")},
		{"windows", map[string]string{"LocalAppData": root}, filepath.Join(root, "muster")},
		{"linux", nil, ""},
		{"linux", map[string]string{"HOME": "."}, ""},
	} {
		got, err := userState(c.system, func(name string) string { return c.env[name] })
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s %v: %q, %v; want %q", c.system, c.env, got, err, c.want)
		}
	}
}

func TestUserCache(t *testing.T) {
	root := t.TempDir()
	for _, c := range []struct {
		system string
		env    map[string]string
		want   string // "" is an error
	}{
		{"linux", map[string]string{"HOME": root}, filepath.Join(root, ".cache", "muster")},
		{"linux", map[string]string{"HOME": "/elsewhere", "XDG_CACHE_HOME": root}, filepath.Join(root, "muster")},
		{"linux", map[string]string{"HOME": root, "XDG_CACHE_HOME": "relative"}, filepath.Join(root, ".cache", "muster")},
		{"darwin", map[string]string{"HOME": root}, filepath.Join(root, "Library", "Caches", "muster")},
		{"windows", map[string]string{"LocalAppData": root}, filepath.Join(root, "muster", "cache")},
		{"linux", nil, ""},
		{"linux", map[string]string{"HOME": "."}, ""},
	} {
		got, err := userCache(c.system, func(name string) string { return c.env[name] })
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s %v: %q, %v; want %q", c.system, c.env, got, err, c.want)
		}
	}
}
