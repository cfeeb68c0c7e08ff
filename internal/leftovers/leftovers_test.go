package leftovers_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"muster/internal/leftovers"
)

func TestPatterns(t *testing.T) {
	listed := strings.Join(leftovers.Patterns(nil), " ")
	if want := "node_modules __pycache__/ .venv/"; !strings.HasPrefix(listed, want) {
		t.Errorf("%q does not begin with %q", listed, want)
	}
	for _, c := range []struct{ tracked, want string }{
		{"node_modules/a/b.js", "!/node_modules/ !/node_modules/**/node_modules"},
		{"a b/[x]*/__pycache__/m.txt", `!/a b/\[x]\*/__pycache__/ !/a b/\[x]\*/__pycache__/**/__pycache__/`},
		{"t/x.pyc,t/y.pyc,z.pyc", "!/*.pyc !/t/*.pyc"},
		{"Cargo.toml,crates/ü/Cargo.toml", "/target/ /crates/ü/target/"},
		{"Cargo.toml,target/xtask.rs", ""},
		{"a\nb/node_modules/c,a\nb/Cargo.toml", ""},
	} {
		got, isLonger := strings.CutPrefix(strings.Join(leftovers.Patterns(strings.Split(c.tracked, ",")), " "), listed)
		if got = strings.TrimPrefix(got, " "); !isLonger || got != c.want {
			t.Errorf("%q: %q, want %q", c.tracked, got, c.want)
		}
	}
	// Where nearly every directory has one, the name says nothing.
	var many []string
	for n := range 1000 {
		many = append(many, fmt.Sprintf("%d/x.pyc", n))
	}
	if got := leftovers.Patterns(many); slices.Contains(got, "*.pyc") || !slices.Contains(got, "*.pyo") || len(got) > 100 {
		t.Errorf("%d patterns: %q", len(got), got[:min(len(got), 30)])
	}
}

func TestThePageHasTheList(t *testing.T) {
	page, err := os.ReadFile("../../docs/landing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range leftovers.Patterns(nil) {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/landing.md does not name %s", name)
		}
	}
}

func TestMarked(t *testing.T) {
	const tag = "Signature: 8a477f597d28d172789f06886806bc55\n"
	contents := map[string]string{"a b/CACHEDIR.TAG": tag, "false/CACHEDIR.TAG": "Signature: 8a47", "CACHEDIR.TAG": tag,
		"in/é/Cargo.toml": "", "env/pyvenv.cfg": "home = /usr\n", "lib/pyvenv.cfg": "", "other/target/x": ""}
	var asked int
	got := leftovers.Marked([]string{"CACHEDIR.TAG", "a b/CACHEDIR.TAG", "a b/x", "env/pyvenv.cfg", "false/CACHEDIR.TAG",
		"in/é/target/a", "in/é/target/b/target/c", "lib/pyvenv.cfg", "other/target/x", "other/target/y"},
		func(file string) ([]byte, error) {
			asked++
			if text, ok := contents[file]; ok {
				return []byte(text), nil
			}
			return nil, errors.New("not there")
		})
	if want := []string{"a b", "env", "in/é/target"}; !slices.Equal(got, want) || asked != 6 {
		t.Errorf("%q after %d reads, want %q", got, asked, want)
	}
}

func TestDoubtful(t *testing.T) {
	added := []string{"a/build/x", "a/build/y", "dist/z", "docs/x.log", "src/build.go", ".idea/a.xml"}
	got := leftovers.Doubtful(added)
	if want := []string{"a/build/", "dist/", "docs/x.log", ".idea/"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNamed(t *testing.T) {
	why := []string{"/x/info/exclude", "2", "b/", "in/b/", "sub/.gitignore", "1", "*", "sub/c", "/x/info/exclude", "3", "d", "d",
		"cut", "off"}
	if got := leftovers.Named([]byte("a\nb/\n"), why); !slices.Equal(got, []string{"in/b/"}) {
		t.Errorf("%q", got)
	}
}
