package git

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"muster"
)

// userConfig is what git's config said when the repository was opened and what holds from then on, whatever an agent
// later writes into the config.
type userConfig struct {
	identity []string  // the environment that makes git commit as the user
	pinned   []setting // which changes of a working tree git sees
	excludes string    // the user's file of patterns for all repositories; "" is none
	drivers  drivers
	signing  signing

	isPartial bool // objects may be missing, which git would fetch when it needs them
	forPlaces placeConfig

	hooksPath   string // where the user's hooks lie; "" is git's own place
	sharedHooks string // the hooksPath of all of the user's repositories
}

// These settings name the user's file of patterns, and that of attributes, for all repositories.
const (
	excludesFile   = "core.excludesfile"
	attributesFile = "core.attributesfile"
)

// pinnedKeys are the settings that decide which changes of a working tree git sees, with their defaults. An agent that
// changes one of them could hide what it did.
func pinnedKeys() map[string]string {
	keys := map[string]string{"core.filemode": "true", "core.symlinks": "true"}
	if home := configHome(); home != "" {
		keys[excludesFile] = filepath.Join(home, "git", "ignore")
		keys[attributesFile] = filepath.Join(home, "git", "attributes")
	}
	return keys
}

// configHome returns the directory that has git/config and other files of the user's, "" where there is no home.
func configHome() string {
	home := os.Getenv("XDG_CONFIG_HOME")
	if user, err := os.UserHomeDir(); home == "" && err == nil {
		home = filepath.Join(user, ".config")
	}
	return home
}

// readConfig reads git's config as it is in dir. It is called once, when the repository is opened.
func (r *runner) readConfig(ctx context.Context, dir string) (c userConfig, err error) {
	values, err := r.scopedConfig(ctx, Call{Dir: dir, Upward: true}, ".")
	if err != nil {
		return c, muster.Errorf(muster.Unavailable, "git cannot read its config: %w", err)
	}
	last := map[string]string{}
	for _, v := range values {
		if v.scope != "command" { // what this program sets itself
			last[v.key] = v.value
		}
		if v.key == "core.hookspath" && v.isUsers() {
			c.sharedHooks = v.value
		}
		c.isPartial = c.isPartial || strings.HasSuffix(v.key, ".promisor") || v.key == "extensions.partialclone"
	}
	for key, byDefault := range pinnedKeys() {
		value, ok := last[key]
		if !ok {
			value = byDefault
		}
		c.pinned = append(c.pinned, setting{key, value})
		if key == excludesFile {
			c.excludes = expandHome(value)
		}
	}
	c.hooksPath = expandHome(last["core.hookspath"])
	c.identity, c.drivers = identityOf(last["user.name"], last["user.email"]), newDrivers(values)
	c.signing = newSigning(values, c.identity)
	c.forPlaces = newPlaceConfig(values, c.identity, c.excludes, expandHome(last[attributesFile]))
	return c, nil
}

// expandHome returns a path of git's config in which ~/ stands for the user's home.
func expandHome(path string) string {
	if below, ok := strings.CutPrefix(path, "~/"); ok {
		home, _ := os.UserHomeDir() // without one git finds none either
		return filepath.Join(home, below)
	}
	return path
}

// underHome writes a path below the user's home directory with ~/.
func underHome(path string) string {
	home, _ := os.UserHomeDir() // without one no path is below it
	if below, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok && home != "" {
		return "~/" + filepath.ToSlash(below)
	}
	return path
}

// caseSetting says whether the file system tells names apart that differ in their case. The config may be wrong about
// it, when the repository was copied from another system: then git would take two files for one.
func caseSetting(common string) setting {
	_, err := os.Lstat(filepath.Join(common, "head")) // git's file is HEAD
	return setting{"core.ignoreCase", strconv.FormatBool(err == nil)}
}

// The identity that the runtime commits as when the user has not told git who they are.
const (
	ownName  = "muster"
	ownEmail = "muster@localhost"
)

// identityOf returns the environment that makes git commit as the user, whom the environment or the config names, else
// as muster <muster@localhost>.
func identityOf(userName, userEmail string) (env []string) {
	// git takes a text of spaces for none.
	text := func(variable string) string { return strings.TrimSpace(os.Getenv(variable)) }
	name := cmp.Or(text("GIT_AUTHOR_NAME"), text("GIT_COMMITTER_NAME"), strings.TrimSpace(userName))
	email := cmp.Or(text("GIT_AUTHOR_EMAIL"), text("GIT_COMMITTER_EMAIL"), strings.TrimSpace(userEmail),
		text("EMAIL"))
	if name == "" || email == "" {
		return identityEnv(ownName, ownEmail)
	}
	return identityEnv(name, email)
}

// identityEnv is the environment that makes git commit as that person.
func identityEnv(name, email string) []string {
	return []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email,
		"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + email}
}
