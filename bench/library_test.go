//go:build linux

package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The library on which landings are measured, from the Go module proxy. Its own tests are the check.
const libraryModule, libraryVersion = "github.com/spf13/cobra", "v1.10.1"

// library is the Go library as it was downloaded, and the directories that all runs with it share, as the runs of one
// user do: a home with Go's caches, and the modules that the library needs.
type library struct {
	files, home, modules string
}

// newLibrary downloads the library and what it needs. Without a network the benchmark fails.
func newLibrary(b *testing.B) *library {
	b.Helper()
	base := need(filepath.EvalSymlinks(b.TempDir()))(b)
	l := &library{home: filepath.Join(base, "home"), modules: filepath.Join(base, "modules")}
	settings := filepath.Join(l.home, ".config", "go")
	must(b, os.MkdirAll(settings, 0o755))
	download := exec.Command("go", "mod", "download", "-modcacherw", "-json", libraryModule+"@"+libraryVersion)
	download.Dir, download.Env = base, append(os.Environ(), "GOMODCACHE="+l.modules, "GOFLAGS=")
	out, err := download.Output()
	var module struct{ Dir, Error string }
	if e := json.Unmarshal(out, &module); e != nil || err != nil || module.Error != "" {
		b.Fatalf("%s %s cannot be downloaded, and landings are measured on it: %s", libraryModule, libraryVersion, module.Error)
	}
	l.files = module.Dir
	rest := exec.Command("go", "mod", "download", "-modcacherw")
	rest.Dir, rest.Env = l.files, download.Env
	if out, err := rest.CombinedOutput(); err != nil {
		b.Fatalf("what %s needs cannot be downloaded: %s", libraryModule, out)
	}
	// A check may see less of the environment than a user does, but it has a home.
	must(b, os.WriteFile(filepath.Join(settings, "env"), []byte("GOMODCACHE="+l.modules+"\nGOPROXY=off\nGOSUMDB=off\n"), 0o644))
	return l
}

// libraryCheck is the check of the library, a command of the shell. Left out are two tests that expect that a file cannot be
// written to, which the superuser always can, and one that links a program, which costs as much as all others.
const libraryCheck = "go test -skip '^(TestFailGen|TestDeadcode)' ./..."

// newWorld makes a repository of the library's files; its home is the one that all runs share.
func (l *library) newWorld(tb testing.TB) *world {
	tb.Helper()
	dir := need(filepath.EvalSymlinks(tb.TempDir()))(tb)
	w := &world{tb: tb, base: dir, root: filepath.Join(dir, "repo")}
	must(tb, os.MkdirAll(filepath.Join(dir, "tmp"), 0o755))
	must(tb, os.CopyFS(w.root, os.DirFS(l.files)))
	// The later one counts. The cache of builds is named, because checks keep one for each repository otherwise: a
	// repository of some weeks has one that knows the standard library, and this one is some seconds old.
	w.env = append(environment(dir), "HOME="+l.home, "GOCACHE="+filepath.Join(l.home, "go-build"))
	w.commitAll()
	return w
}

// checkScript writes a check that runs a command and notes what that cost, and returns the command that runs it.
func (w *world) checkScript(command string) string {
	w.tb.Helper()
	file := filepath.Join(w.base, "check.sh")
	text := fmt.Sprintf(`echo >> %[1]s/started
( %[2]s )
code=$?
times > %[1]s/times.$$ # not in a pipe, where it would be asked of another shell
awk -v code=$code 'NR == 2 { print $1, $2, code }' %[1]s/times.$$ >> %[1]s/ended
exit $code
`, w.base, command)
	must(w.tb, os.WriteFile(file, []byte(text), 0o755))
	return "bash " + file
}

// checksRun are the checks that a script of checkScript has counted: how many have begun, and the processor time of those that
// came to their end, in seconds.
func (w *world) checksRun() (n int, cpu float64) {
	started, _ := os.ReadFile(filepath.Join(w.base, "started"))
	ended, _ := os.ReadFile(filepath.Join(w.base, "ended"))
	for line := range strings.Lines(string(ended)) {
		var user, system [2]float64
		var code int
		_, err := fmt.Sscanf(line, "%fm%fs %fm%fs %d", &user[0], &user[1], &system[0], &system[1], &code)
		must(w.tb, err)
		cpu += 60*(user[0]+system[0]) + user[1] + system[1]
	}
	return strings.Count(string(started), "\n"), cpu
}

func (w *world) forgetChecks() {
	for _, name := range []string{"started", "ended"} {
		_ = os.Remove(filepath.Join(w.base, name))
	}
}
