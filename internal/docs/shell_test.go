package docs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/wait"
)

// patience is how long a page waits for what a running team does, and longest how long one command may take: it may
// compile muster on a busy machine.
const (
	patience = time.Minute
	longest  = 5 * time.Minute
)

// home is what pages call the directory that holds everything.
const home = "/home/you"

// looks are commands that only look: while a team runs beside the page, what they show takes a moment to come true.
var looks = regexp.MustCompile(`^muster (status|log|requests|mail list|task list|task show|team list|worktree list)\b`)

// shell runs the commands of one page.
type shell struct {
	t     *testing.T
	base  string
	stdin io.Writer
	lines chan string
	ids   map[string]string // of the page -> of this run
}

func open(t *testing.T, env []string) *shell {
	t.Helper()
	base := require.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	s := &shell{t: t, base: base, lines: make(chan string, 1000), ids: map[string]string{}}
	for _, d := range []string{"home", "tmp", "words"} {
		require.NoError(t, os.Mkdir(filepath.Join(base, d), 0o755))
	}
	require.NoError(t, gittest.Home(filepath.Join(base, "home")))
	gittest.GoCache(t, filepath.Join(base, "home", ".cache", "muster", "checks"))
	cmd := exec.Command("sh")
	cmd.Dir = filepath.Join(base, "words")
	cmd.Env = append([]string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + filepath.Join(base, "home"), "TMPDIR=" + filepath.Join(base, "tmp"),
		"MUSTER=" + root, "TZ=UTC", "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES=" + base, "GIT_PAGER=cat",
		// In a sandbox each page would compile the standard library of Go for its checks.
		"MUSTER_SANDBOX_ENABLED=false", "GOPROXY=off", "GOTOOLCHAIN=local",
	}, append(slices.Clone(goDirs), env...)...)
	in := require.Value(cmd.StdinPipe())(t)
	out, w, err := os.Pipe() // what the shell leaves running must not keep Wait
	require.NoError(t, err)
	s.stdin, cmd.Stdout, cmd.Stderr = in, w, w
	require.NoError(t, cmd.Start())
	w.Close()
	go func() {
		r := bufio.NewScanner(out)
		r.Buffer(nil, 1<<20)
		for r.Scan() {
			s.lines <- r.Text()
		}
		close(s.lines)
	}()
	t.Cleanup(func() {
		if t.Failed() {
			fmt.Fprintln(in, "[ -z \"$!\" ] || kill $!")
		}
		fmt.Fprintln(in, "wait; exit")
		in.Close()
		_ = cmd.Wait()
		out.Close()
	})
	s.must("git init -q -b main && printf 'a few words\\n' > README && git add . && git commit -q -m start")
	return s
}

// mark ends what a command printed.
const mark = "-- that was exit "

// run runs a command in the shell itself, so that cd and export hold for the next.
func (s *shell) run(command string) (out []string, exit string) {
	s.t.Helper()
	fmt.Fprintf(s.stdin, "{ %s\n} </dev/null\nprintf '\\n%s%%d\\n' $?\n", command, mark)
	late := time.After(longest)
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				s.t.Fatalf("the shell ended with %s", command)
			}
			if code, is := strings.CutPrefix(line, mark); is {
				if n := len(out) - 1; n >= 0 && out[n] == "" { // the mark's own
					out = out[:n]
				}
				return out, code
			}
			out = append(out, strings.ReplaceAll(line, s.base, home))
		case <-late:
			s.t.Fatalf("no end after %s: %s\n%s", longest, command, strings.Join(out, "\n"))
		}
	}
}

func (s *shell) must(command string) {
	s.t.Helper()
	if out, exit := s.run(command); exit != "0" {
		s.t.Fatalf("exit %s: %s\n%s", exit, command, strings.Join(out, "\n"))
	}
}

func (s *shell) do(b block, used chan<- string) {
	s.t.Helper()
	if b.file != "" {
		s.must("cat > " + b.file + " <<'-- end of the file --'\n" + b.text + "-- end of the file --")
		return
	}
	if !b.shown && excused[b.text] != "" {
		s.t.Logf("%s: not run: %s (%s)", b.at, b.text, excused[b.text])
		used <- b.text
		return
	}
	command := b.text
	for page, real := range s.ids {
		command = strings.ReplaceAll(command, page, real)
	}
	limit := time.Duration(0)
	if looks.MatchString(b.text) { // it may have to wait for what a running team does
		limit = patience
	}
	var out []string
	var why string
	_, ok := wait.Poll(limit, func() bool {
		var exit string
		out, exit = s.run(command)
		why = ""
		if b.shown {
			why = fit(b.want, out, s.ids)
		}
		if exit != b.exit {
			why += fmt.Sprintf("exit %s, want %s\n", exit, b.exit)
		}
		return why == ""
	})
	if !ok {
		s.t.Fatalf("%s: $ %s\n%s\nit printed:\n%s", b.at, b.text, why, strings.Join(out, "\n"))
	}
}
