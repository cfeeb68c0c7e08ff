package code

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"muster/internal/proc"
	"muster/internal/testing/require"
	"muster/llm"
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	os.Exit(m.Run())
}

// fixedDir is a Workdir that fixedPlace can embed beside its method.
type fixedDir = Workdir

// fixedPlace is a Place that is always the same.
type fixedPlace struct {
	fixedDir
	err error
}

func (s fixedPlace) Workdir(context.Context) (Workdir, error) { return s.fixedDir, s.err }

// kit is a member's tools in a directory of a test's own.
type kit struct {
	t     *testing.T
	dir   string
	place *fixedPlace
	jobs  *Jobs
	tools []llm.Tool
}

func newKit(t *testing.T) *kit {
	t.Helper()
	dir := require.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	l := require.Value(proc.New(t.Context()))(t)
	k := &kit{t: t, dir: filepath.Join(dir, "lane"), jobs: NewJobs(l)}
	k.place = &fixedPlace{fixedDir: Workdir{Dir: k.dir, Writable: true,
		ReadOnly: []string{filepath.Join(dir, "outputs")}}}
	for _, d := range []string{"lane", "outputs"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, d), 0o700))
	}
	k.tools = Tools(k.place, l, k.jobs, Options{Outputs: k.place.ReadOnly[0], syntaxTimeout: time.Minute})
	t.Cleanup(func() {
		k.jobs.Close()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// put makes a file below the lane.
func (k *kit) put(name, content string) {
	k.t.Helper()
	path := filepath.Join(k.dir, name)
	require.NoError(k.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(k.t, os.WriteFile(path, []byte(content), 0o600))
}

// show makes a file that the model has read.
func (k *kit) show(name, content string) {
	k.t.Helper()
	k.put(name, content)
	k.ok("read_file", in{"path": name})
}

func (k *kit) get(name string) string {
	k.t.Helper()
	return string(require.Value(os.ReadFile(filepath.Join(k.dir, name)))(k.t))
}

func (k *kit) git(args ...string) {
	k.t.Helper()
	c := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost", "-c",
		"init.defaultBranch=main"}, args...)...)
	c.Dir, c.Env = k.dir, Environ(k.t.Context(), nil, k.dir)
	if out, err := c.CombinedOutput(); err != nil {
		k.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// in is the input of a call.
type in map[string]any

func (k *kit) call(name string, input in) llm.Result {
	k.t.Helper()
	r, err := k.try(k.t.Context(), name, input)
	if err != nil {
		k.t.Fatalf("%s: %v", name, err)
	}
	return r
}

func (k *kit) try(ctx context.Context, name string, input in) (llm.Result, error) {
	k.t.Helper()
	var data bytes.Buffer
	e := json.NewEncoder(&data)
	e.SetEscapeHTML(false)
	require.NoError(k.t, e.Encode(input))
	for _, tl := range k.tools {
		if tl.Spec().Name == name {
			return tl.Run(ctx, llm.Call{ID: "c", Name: name, Input: data.Bytes()}, nil)
		}
	}
	k.t.Fatalf("there is no tool %s", name)
	return llm.Result{}, nil
}

// ok calls a tool that must succeed and returns its text.
func (k *kit) ok(name string, input in) string {
	k.t.Helper()
	r := k.call(name, input)
	if r.IsError {
		k.t.Errorf("%s%v is an error: %s", name, input, r.Text())
	}
	return r.Text()
}

// sorry calls a tool that must tell the model of an error and returns its text.
func (k *kit) sorry(name string, input in) string {
	k.t.Helper()
	r := k.call(name, input)
	if !r.IsError {
		k.t.Errorf("%s%v is no error: %s", name, input, r.Text())
	}
	return r.Text()
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got: %q\nwant: %q", what, got, want)
	}
}
