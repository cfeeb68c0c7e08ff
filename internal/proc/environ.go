package proc

import (
	_ "embed"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"muster/internal/redact"
)

// Environment returns what the commands of agents, checks and set-ups may see of env: the variables that programs and
// toolchains need, and those that pass names. All others are withheld, because what a variable is for cannot be told by
// its name alone, and commands that a model has written must find no key.
//
// A name in pass that ends in * stands for all variables that begin so. A variable whose name is that of a credential,
// or whose value holds a secret, is only passed if pass has its whole name. What would lead git to another repository
// and muster's own settings (MUSTER_*) are never passed.
func Environment(env, pass []string) []string {
	secrets := redact.New(redact.FromEnviron(env)...)
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		return !isPassed(name, value, pass, secrets)
	})
}

// WithVariables returns env with variables, each NAME=VALUE, in place of those of the same names. Which of two
// variables of one name a program gets is not defined.
func WithVariables(env []string, set ...string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(set, func(s string) bool { return isVariable(s, name) })
	})
	return append(env, set...)
}

// Variable returns the value of a variable. Of several the last counts, as in os/exec.
func Variable(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if isVariable(kv, name) {
			return kv[len(name)+1:]
		}
	}
	return ""
}

// isVariable reports whether kv sets the variable with the name. Windows tells no case apart.
func isVariable(kv, name string) bool {
	n, _, ok := strings.Cut(kv, "=")
	return ok && (n == name || runtime.GOOS == "windows" && strings.EqualFold(n, name))
}

// isPassed reports whether a variable reaches commands.
func isPassed(name, value string, pass []string, secrets *redact.Secrets) bool {
	upper := strings.ToUpper(name) // Windows tells no case apart, and proxies are written both ways
	switch {
	case strings.HasPrefix(upper, "MUSTER_"), slices.Contains(MisleadsGit, upper):
		return false
	case slices.Contains(pass, name):
		return true
	case redact.IsCredential(name), secrets.Contains(value),
		slices.ContainsFunc(redact.InVariable(name, value), func(password string) bool {
			return password != "changeit" // the one that Java has for everybody's trust store
		}):
		return false
	}
	return matches(passedVariables(), upper) || matches(pass, name)
}

// matches reports whether list has the name, or a beginning of it with a * behind.
func matches(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		prefix, isPrefix := strings.CutSuffix(entry, "*")
		return entry == name || isPrefix && strings.HasPrefix(name, prefix)
	})
}

// MisleadsGit are the variables that would lead git to another repository, as git rev-parse --local-env-vars has them.
var MisleadsGit = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
	"GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_GRAFT_FILE",
	"GIT_IMPLICIT_WORK_TREE", "GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE",
}

// passedVariables are the variables that commands see. docs/models-and-settings.md lists them for users; a test holds
// the two together. A * is any ending. Beginnings that are also those of credentials are written out: GOOGLE_* is not
// Go's, and BUNDLE_* holds the passwords of hosts.
//
//go:embed environ.txt
var passedNames string

var passedVariables = sync.OnceValue(func() []string { return strings.Fields(passedNames) })

// FindOutside finds a program in the PATH of env, and returns its path, "" if there is none, and env with a PATH of the
// directories in which it may look for others. What lies in one of dirs is left out, also by its links, and so is what
// the PATH names relative to a working directory: a repository may hold anything under the name of a program, and what
// muster runs by itself must be the user's own.
func FindOutside(program string, env []string, dirs ...string) (path string, outside []string) {
	inside := slices.Clone(dirs)
	for _, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			inside = append(inside, real)
		}
	}
	isInside := func(path string) bool {
		return slices.ContainsFunc(inside, func(dir string) bool {
			rel, err := filepath.Rel(dir, path)
			return dir != "" && err == nil && filepath.IsLocal(rel)
		})
	}
	isOutside := func(path string) bool {
		real, err := filepath.EvalSymlinks(path)
		return err == nil && !isInside(path) && !isInside(real)
	}
	var list []string
	for _, dir := range filepath.SplitList(Variable(env, "PATH")) {
		if !filepath.IsAbs(dir) || !isOutside(dir) {
			continue
		}
		list = append(list, dir)
		if found, err := exec.LookPath(filepath.Join(dir, program)); path == "" && err == nil && isOutside(found) {
			path = found
		}
	}
	return path, WithVariables(env, "PATH="+strings.Join(list, string(filepath.ListSeparator)))
}
