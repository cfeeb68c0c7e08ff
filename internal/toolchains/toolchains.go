// Package toolchains says what of the user's programs and toolchains confined programs see: those that PATH and known
// variables name, and those that are known of a home directory.
package toolchains

import (
	"cmp"
	_ "embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"muster/internal/proc"
	"muster/internal/sandbox"
	"muster/internal/text"
)

// toolTable says where tools keep what programs need of them. A line has the directory in a home, the variables that
// name another one, and what is shown of either; nothing is all. What has passwords or keys is not shown:
// .cargo/credentials.toml, .gem/credentials, .m2/settings.xml, .npmrc, .gradle/gradle.properties, .config, .ssh.
//
//go:embed toolchains.txt
var toolTable string

type tool struct {
	name      string
	variables []string
	parts     []string
}

var tools = sync.OnceValue(func() (all []tool) {
	for line := range strings.Lines(strings.TrimSpace(toolTable)) {
		before, parts, _ := strings.Cut(line, ":")
		words := strings.Fields(before)
		t := tool{words[0], words[1:], strings.Fields(parts)}
		if len(t.parts) == 0 {
			t.parts = []string{"."}
		}
		all = append(all, t)
	}
	return all
})

// HasKeys reports whether a path is in a directory of keys in a home directory.
func HasKeys(home, path string) bool {
	isIn := func(dir string) bool { return sandbox.IsBelow(filepath.Join(home, dir), path) }
	return slices.ContainsFunc(keyDirs, isIn)
}

// IsVariable reports whether a variable of the environment names a directory of a tool.
func IsVariable(name string) bool {
	return slices.ContainsFunc(tools(), func(t tool) bool { return slices.Contains(t.variables, name) })
}

// Rules returns the rules for the user's home directory, and for the programs and toolchains that an environment
// names outside of the system. Of the home directory nothing is there but toolchains, and what a program writes there
// goes with it.
//
// A directory of PATH is shown, and with it the installation that it belongs to, where that has libraries. So is what
// variables such as GOROOT name. None of them may have in it a home, a user's settings or keys, one of the directories
// hidden, or a repository but its own clone. What counts is where a path leads to.
func Rules(env []string, home string, hidden ...string) sandbox.Rules {
	g := newGuard(env, home, hidden)
	if g.home != "" {
		g.rules = append(g.rules, sandbox.Rule{Path: home, Access: sandbox.Empty})
		for _, t := range tools() {
			for _, part := range t.parts {
				if t.name != "-" {
					g.show(filepath.Join(home, t.name, part), nil)
				}
			}
		}
	}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		for _, dir := range filepath.SplitList(value) {
			switch {
			case !filepath.IsAbs(dir):
			case name == "PATH":
				g.showPath(dir)
			default:
				g.showTool(name, dir)
			}
		}
	}
	return g.rules
}

// guard collects rules for what is shown. It says which directories never are because a variable names them, or
// something in them.
type guard struct {
	rules    sandbox.Rules
	home     string   // "" is none
	config   string   // XDG_CONFIG_HOME
	homes    []string // of all users, and where all users write
	settings []string // directories of settings and data, such as ~/.config
	hidden   []string // what nothing of is shown, such as ~/.ssh
	walk     sandbox.Walk
}

// The directories in a home that have settings and data of many programs, and those that have keys.
var (
	settingsDirs = []string{".config", ".local", ".local/share", ".local/state", ".cache", "Library",
		"Library/Application Support"}
	keyDirs = []string{".ssh", ".gnupg", ".aws", ".azure", ".docker", ".kube", ".mozilla", ".password-store", ".pki",
		".config/gcloud", ".local/share/keyrings", "Library/Keychains"}
)

func newGuard(env []string, home string, hidden []string) *guard {
	g := &guard{config: proc.Variable(env, "XDG_CONFIG_HOME"), walk: sandbox.Walk{},
		homes: slices.Concat(sandbox.Homes(), sandbox.TemporaryDirs)}
	if filepath.IsAbs(home) && filepath.Clean(home) != "/" {
		g.home = g.real(home)
		g.homes = append(g.homes, g.home)
	}
	for _, home := range g.homes {
		for _, name := range settingsDirs {
			g.settings = append(g.settings, filepath.Join(home, name))
		}
		for _, name := range keyDirs {
			g.hidden = append(g.hidden, filepath.Join(home, name))
		}
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
		"XDG_RUNTIME_DIR"} {
		g.settings = append(g.settings, proc.Variable(env, name))
	}
	g.hidden = append(append(g.hidden, proc.Variable(env, "GNUPGHOME"), proc.Variable(env, "PASSWORD_STORE_DIR")),
		hidden...)
	if proc.Variable(env, "WSL_DISTRO_NAME") != "" { // Windows' programs run nowhere else, and its disks are slow
		g.hidden = append(g.hidden, "/mnt")
	}
	for _, all := range []*[]string{&g.homes, &g.settings, &g.hidden} {
		*all = slices.DeleteFunc(*all, func(path string) bool { return !filepath.IsAbs(path) })
		for i, path := range *all {
			(*all)[i] = g.real(path)
		}
	}
	return g
}

func (g *guard) real(path string) string {
	real, _ := g.walk.Follow(path)
	return real
}

// show adds a rule for a path that exists, if its target passes mayShow and isWanted, and the system's rules do not
// show both already. A nil isWanted accepts everything. A link in a repository may be one that a member has landed: it
// shows nothing outside.
func (g *guard) show(path string, isWanted func(real string) bool) {
	real, links := g.walk.Follow(path)
	if _, err := os.Stat(real); err != nil || sandbox.IsOfSystem(path) && sandbox.IsOfSystem(real) {
		return
	}
	for link := range links {
		if repo := g.repositoryOf(filepath.Dir(link)); repo != "" && !sandbox.IsBelow(repo, real) {
			return
		}
	}
	if g.mayShow(real) && (isWanted == nil || isWanted(real)) {
		g.rules = append(g.rules, sandbox.Rule{Path: path})
	}
}

// mayShow reports whether a directory has nothing in it that is never shown, and is not in something that is hidden.
func (g *guard) mayShow(real string) bool {
	has := func(path string) bool { return sandbox.IsBelow(real, path) }
	return !slices.ContainsFunc(g.homes, has) && !slices.ContainsFunc(g.settings, has) &&
		!slices.ContainsFunc(g.hidden, func(path string) bool { return has(path) || sandbox.IsBelow(path, real) })
}

// showTool shows what a directory that a variable names has of a tool.
func (g *guard) showTool(variable, dir string) {
	for _, t := range tools() {
		if !slices.Contains(t.variables, variable) {
			continue
		}
		for _, part := range t.parts {
			g.show(filepath.Join(dir, part), func(real string) bool {
				isUsual := strings.Trim(filepath.Base(real), ".") == strings.Trim(filepath.Base(t.name), ".")
				return part != "." || (isUsual || !g.isSettings(real)) && g.isInstallation(real)
			})
		}
	}
}

// The names of directories of programs, and of what stands beside the programs of an installation that needs more.
var (
	programDirs = []string{"bin", "sbin", "shims", "condabin", ".bin"}
	libraryDirs = []string{"lib", "lib32", "lib64", "libexec", "libs", "jars", "share", "include", "pkg", "packages",
		"installs", "versions"}
)

// showPath shows a directory of programs, their installation, and what its links lead to.
func (g *guard) showPath(dir string) {
	g.show(dir, func(real string) bool { return !holdsMore(real) })
	g.showInstallation(filepath.Clean(dir))
	real := g.real(dir)
	if real != filepath.Clean(dir) { // an installation is found by both names of its programs
		g.showInstallation(real)
	}
	// A link that a member has landed must not decide what is shown.
	if sandbox.IsOfSystem(real) || !g.shows(real) || g.repositoryOf(real) != "" {
		return
	}
	entries, _ := os.ReadDir(real) // one that cannot be read has no programs either
	links := slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Type()&fs.ModeSymlink == 0 })
	for _, e := range links[:min(len(links), maxLinks)] {
		program := g.real(filepath.Join(real, e.Name()))
		if sandbox.IsOfSystem(program) || g.shows(program) {
			continue
		}
		g.show(program, func(string) bool {
			st, err := os.Stat(program)
			return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 && !g.isConfig(program)
		})
		if g.shows(program) {
			g.showInstallation(filepath.Dir(program))
		}
	}
}

// maxLinks is how many links of a directory of PATH are followed.
const maxLinks = 500

// isConfig reports whether a program lies in a directory of settings, such as ~/.config, where programs keep tokens.
func (g *guard) isConfig(real string) bool {
	return slices.ContainsFunc(g.settings, func(dir string) bool {
		return (filepath.Base(dir) == ".config" || filepath.Base(dir) == "Application Support" ||
			dir == g.real(g.config)) && sandbox.IsBelow(dir, real)
	})
}

// repositoryOf returns the working tree of git that a directory is in, "" for none. That of a home directory, which has
// the user's settings, is none unless the team works there.
func (g *guard) repositoryOf(real string) string {
	for dir := real; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		isSettings := slices.Contains(g.homes, dir) && !slices.Contains(g.hidden, filepath.Join(dir, ".git"))
		if hasOneOf(dir, ".git") && !isSettings {
			return dir
		}
	}
	return ""
}

// shows reports whether one of the rules so far shows a path.
func (g *guard) shows(real string) bool {
	return slices.ContainsFunc(g.rules, func(x sandbox.Rule) bool {
		return x.Access == sandbox.Read && sandbox.IsBelow(g.real(x.Path), real)
	})
}

// showInstallation shows what belongs to the programs in a directory. Of a directory that has settings, too, that is
// only what an installation has.
func (g *guard) showInstallation(dir string) {
	base, up := filepath.Base(dir), filepath.Dir(dir)
	if !slices.Contains(programDirs, base) || base != ".bin" && !hasOneOf(up, libraryDirs...) {
		return
	}
	parts := []string{"."}
	if g.isSettings(g.real(up)) {
		parts = libraryDirs
	} else if hasOneOf(up, "pyvenv.cfg") { // most lie in the repository that they are for
		for _, part := range []string{"pyvenv.cfg", "lib", "lib64"} {
			g.show(filepath.Join(up, part), nil)
		}
	}
	for _, part := range parts {
		g.show(filepath.Join(up, part), g.isInstallation)
	}
}

// isSettings reports whether a directory is where one program keeps settings, such as ~/.cargo and ~/.config/gh.
func (g *guard) isSettings(real string) bool {
	base, up := filepath.Base(real), filepath.Dir(real)
	if hasOneOf(real, ".git") && isToolClone(real) {
		return false
	}
	return slices.Contains(g.settings, up) || slices.Contains(g.homes, up) && base[0] == '.' && base != ".linuxbrew"
}

// isInstallation reports whether a directory can be a toolchain's as a whole: it is no part of a repository and has
// none in it, but for the toolchain's own clone.
func (g *guard) isInstallation(real string) bool {
	// A repository of a home directory itself has the user's settings.
	for dir := real; !slices.Contains(g.homes, dir) && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if hasOneOf(dir, ".git") {
			return isToolClone(dir)
		}
	}
	return !holdsMore(real)
}

// The names of toolchains that are installed as a clone of their repository, and programs of others.
var (
	cloneNames = []string{"asdf", "flutter", "goenv", "jenv", "nodenv", "nvm", "phpenv", "plenv", "pyenv", "rbenv",
		"tfenv"}
	clonePrograms = []string{"bin/brew", "bin/flutter", "bin/fzf", "bin/go", "emsdk", "gclient", "vcpkg"}
)

// isToolClone reports whether a repository is a toolchain.
func isToolClone(dir string) bool {
	return slices.Contains(cloneNames, strings.Trim(filepath.Base(dir), ".")) ||
		slices.ContainsFunc(clonePrograms, func(name string) bool {
			st, err := os.Stat(filepath.Join(dir, name))
			return err == nil && st.Mode().IsRegular()
		})
}

// The search for what a toolchain has not goes so deep, and to so many directories. What has more is no toolchain.
const (
	searchDepth = 4
	searchDirs  = 20_000
)

// holdsMore reports whether all users write in a directory, or it has more in it than a toolchain: a repository, or
// what only homes have. It may be a clone, and have plugins that are.
func holdsMore(real string) bool {
	if st, err := os.Stat(real); err != nil || st.Mode()&fs.ModeSticky != 0 && st.Mode()&0o002 != 0 {
		return true
	}
	level := []string{real}
	for depth, n := 0, 0; depth <= searchDepth; depth++ {
		var next []string
		for _, dir := range level {
			entries, _ := os.ReadDir(dir) // what cannot be read cannot be shown
			has := func(name string) bool {
				return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
			}
			isPlugin := depth > 0 && filepath.Base(filepath.Dir(dir)) == "plugins"
			switch {
			case has(".git") && (isPlugin || isToolClone(dir)):
				continue // what it has of other clones is its own
			case has(".git"), has("HEAD") && has("objects") && has("refs"), slices.ContainsFunc(ofHomes, has):
				return true
			}
			for _, e := range entries {
				if e.IsDir() {
					next = append(next, filepath.Join(dir, e.Name()))
				}
			}
		}
		if n += len(next); n > searchDirs {
			return true
		}
		level = next
	}
	return false
}

// ofHomes are names by which a home directory is known.
var ofHomes = []string{".ssh", ".gnupg", ".aws", ".netrc", ".password-store", ".bash_history", ".zsh_history"}

// hasOneOf reports whether one of some paths is there below a directory.
func hasOneOf(dir string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}

// WithHome returns the arguments that make the home directory $HOME of a program, with links to what rules show of a
// user's home directory, and then start it. It is for programs that cannot be shown an empty directory in the place of
// the user's. Programs may have written where it is made, so it is made by a confined one.
func WithHome(argv []string, users string, r sandbox.Rules) []string {
	links := map[string]string{}
	for _, x := range r {
		name, err := filepath.Rel(users, x.Path)
		isShown := x.From != "" || users != "/" && (x.Access == sandbox.Read || x.Access == sandbox.Write)
		if isShown && err == nil && filepath.IsLocal(name) && name != "." {
			links[name] = cmp.Or(x.From, x.Path)
		}
	}
	script := `(mkdir -p "$HOME" && cd "$HOME" || exit`
	for _, name := range slices.Sorted(maps.Keys(links)) { // what is below another one is there already
		script += fmt.Sprintf("\n[ -e %[2]s ] || { mkdir -p %[1]s; ln -sn %[3]s %[2]s; }",
			text.ShellQuote(filepath.Dir(name)), text.ShellQuote(name), text.ShellQuote(links[name]))
	}
	return slices.Concat(proc.Shell(script+") 2>/dev/null\n"+`exec "$@"`), []string{"sh"}, argv)
}
