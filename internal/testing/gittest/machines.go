package gittest

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
)

// A Machine is one of those on which people work: a repository, and what a program there has in its environment. Its
// directories lie below Base.
type Machine struct {
	Base, Root string
	Env        []string
}

// Tokens stand in the files of a runner that hold passwords. A test may look whether one of them comes to light.
const Tokens = "token-of-the-runner"

// Ordinary makes the machine of an ordinary developer: see Home.
func Ordinary(t testing.TB, files map[string]string) Machine {
	t.Helper()
	root := Repo(t, files)
	m := Machine{Base: filepath.Dir(root), Root: root}
	if err := Home(m.at("home")); err != nil {
		t.Fatal(err)
	}
	m.have(t, "HOME="+m.at("home"), "PATH="+os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1")
	return m
}

// Container makes the machine that a container is to its root: the repository and all of its files are those of user
// 1000, as in a directory of the host, the home is /, what git knows is the system's, and bubblewrap is not installed.
// Where the tests do not run as root it skips the test.
func Container(t testing.TB, files map[string]string) Machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("left out: the container is root's")
	}
	root := Repo(t, files)
	m := Machine{Base: filepath.Dir(root), Root: root}
	Write(t, m.Base, map[string]string{"etc/gitconfig": "[user]\n\tname = Image\n\temail = image@example.com\n" +
		"[safe]\n\tdirectory = *\n[gc]\n\tautoDetach = false\n"})
	if err := os.Mkdir(m.at("bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		programs, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, path := range programs {
			if name := filepath.Base(path); name != "bwrap" {
				_ = os.Symlink(path, m.at("bin/"+name)) // the first of a name counts
			}
		}
	}
	if err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		return cmp.Or(err, os.Lchown(path, 1000, 1000))
	}); err != nil {
		t.Fatal(err)
	}
	m.have(t, "HOME=/", "XDG_STATE_HOME="+m.at("state"), "XDG_CACHE_HOME="+m.at("cache"), "PATH="+m.at("bin"),
		"GIT_CONFIG_SYSTEM="+m.at("etc/gitconfig"))
	return m
}

// Runner makes the machine of a CI service: the repository is a clone with one commit on no branch, which borrows
// objects of a mirror, and whose origin is the bare repository origin.git below Base. The settings of git come by the
// environment, files and variables have passwords, and the proxy refuses.
func Runner(t testing.TB, files map[string]string) Machine {
	t.Helper()
	source := Repo(t, files)
	m := Machine{Base: filepath.Dir(source), Root: filepath.Join(filepath.Dir(source), "checkout")}
	Git(t, source, "commit", "-q", "--allow-empty", "-m", "second")
	Git(t, m.Base, "clone", "-q", "--bare", source, m.at("origin.git"))
	Git(t, m.Base, "clone", "-q", "--bare", source, m.at("mirror.git"))
	Git(t, source, "commit", "-q", "--allow-empty", "-m", "third")
	Git(t, source, "push", "-q", m.at("origin.git"), "main")
	Git(t, m.Base, "clone", "-q", "--depth", "1", "--reference", m.at("mirror.git"), "file://"+m.at("origin.git"),
		m.Root)
	Git(t, m.Root, "checkout", "-q", "--detach")
	Git(t, m.Root, "config", "http.https://example.com/.extraHeader", "AUTHORIZATION: basic "+Tokens)
	Write(t, m.at("home"), map[string]string{
		".netrc":              "machine example.com login x password " + Tokens + "\n",
		".git-credentials":    "https://x:" + Tokens + "@example.com\n",
		".docker/config.json": `{"auths": {"example.com": {"auth": "` + Tokens + "\"}}}\n",
		".npmrc":              "//npm.example.com/:_authToken=" + Tokens + "\n",
	})
	m.have(t, "HOME="+m.at("home"), "PATH="+os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=3",
		"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		"GIT_CONFIG_KEY_1=user.name", "GIT_CONFIG_VALUE_1=Robot",
		"GIT_CONFIG_KEY_2=user.email", "GIT_CONFIG_VALUE_2=robot@example.com",
		"CI=true", "GITHUB_ACTIONS=true", "RUNNER_TEMP="+m.at("tmp"), "GITHUB_TOKEN="+Tokens, "NPM_TOKEN="+Tokens,
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "ALL_PROXY=http://127.0.0.1:9",
		"NO_PROXY=localhost,127.0.0.1")
	return m
}

func (m *Machine) at(name string) string { return filepath.Join(m.Base, filepath.FromSlash(name)) }

// have adds to the environment what is the same on all machines, and the variables.
func (m *Machine) have(t testing.TB, variables ...string) {
	t.Helper()
	if err := os.Mkdir(m.at("tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	m.Env = append([]string{"TMPDIR=" + m.at("tmp"), "LANG=C.UTF-8"}, variables...)
}
