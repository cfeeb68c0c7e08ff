package git

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"muster"
)

// userConfig is what git's config said when the repository was opened and what holds from then on, whatever an agent
// later writes into the config.
type userConfig struct {
	settings map[string]string // all of them: the last value of a key counts, as it does for git
	identity person
	pinned   []Setting // which changes of a working tree git sees
	// userFiles name the user's file of patterns, and that of attributes, for all repositories.
	userFiles []Setting
	drivers   drivers
	signing   signing

	isPartial bool // objects may be missing, which git would fetch when it needs them
	forPlaces placeConfig

	hooksPath   string // where the user's hooks lie; "" is git's own place
	sharedHooks string // the hooksPath of all of the user's repositories
}

// The keys of userFiles.
const (
	excludesFile   = "core.excludesfile"
	attributesFile = "core.attributesfile"
)

// usersFile returns the path of a file of the user's, such as config, for git in all repositories, "" where there is no
// home.
func usersFile(name string) string {
	home := os.Getenv("XDG_CONFIG_HOME")
	if user, err := os.UserHomeDir(); home == "" && err == nil {
		home = filepath.Join(user, ".config")
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, "git", name)
}

// readConfig reads git's config as it is in dir. It is called once, when the repository is opened.
func (r *runner) readConfig(ctx context.Context, dir string) (c userConfig, err error) {
	out, err := r.Do(ctx, Call{Dir: dir, Upward: true, Args: []string{"config", "-z", "--show-scope", "--list"}})
	if err != nil {
		return c, muster.Errorf(muster.Unavailable, "git cannot read its config: %w", err)
	}
	var values []scoped
	fromUser := len(given(r.env)) // git lists them before what this program sets itself
	c.settings = map[string]string{}
	for entry := range slices.Chunk(SplitNUL(out), 2) {
		key, value, hasValue := strings.Cut(entry[len(entry)-1], "\n")
		if !hasValue {
			value = "true" // a key alone
		}
		v := scoped{scope: entry[0], key: key, value: value}
		if v.scope == "command" {
			if fromUser--; fromUser < 0 {
				break
			}
			v.scope = "global"
		}
		values = append(values, v)
		c.settings[key] = value
		if key == "core.hookspath" && v.isUsers() {
			c.sharedHooks = value
		}
		c.isPartial = c.isPartial || strings.HasSuffix(key, ".promisor") || key == "extensions.partialclone"
	}
	value := func(key, byDefault string) string {
		if value, ok := c.settings[key]; ok {
			return value
		}
		return byDefault
	}
	// An agent that changes one of these could hide what it did.
	c.pinned = []Setting{{"core.filemode", value("core.filemode", "true")},
		{"core.symlinks", value("core.symlinks", "true")}}
	ignore, attributes := value(excludesFile, usersFile("ignore")), value(attributesFile, usersFile("attributes"))
	c.userFiles = []Setting{{excludesFile, ignore}, {attributesFile, attributes}}
	c.hooksPath = expandHome(c.settings["core.hookspath"])
	c.identity, c.drivers = committer(c.settings["user.name"], c.settings["user.email"]), newDrivers(values)
	c.signing = newSigning(values, c.identity)
	c.forPlaces = newPlaceConfig(values, c.identity, expandHome(ignore), expandHome(attributes))
	return c, nil
}

// Configured returns what git's config said for a key, in lower case, when the repository was opened; "" where it said
// nothing.
func (c *userConfig) Configured(key string) string { return c.settings[key] }

// expandHome returns a path of git's config in which ~/ stands for the user's home.
func expandHome(path string) string {
	if below, ok := strings.CutPrefix(path, "~/"); ok {
		home, _ := os.UserHomeDir() // without one git finds none either
		return filepath.Join(home, below)
	}
	return path
}

// caseSetting says whether the file system tells names apart that differ in their case. The config may be wrong about
// it, when the repository was copied from another system: then git would take two files for one.
func caseSetting(common string) Setting {
	_, err := os.Lstat(filepath.Join(common, "head")) // git's file is HEAD
	return Setting{"core.ignoreCase", strconv.FormatBool(err == nil)}
}

type person struct{ name, email string }

// ownIdentity is whom the runtime commits as when the user has not told git who they are.
var ownIdentity = person{"muster", "muster@localhost"}

// committer returns the user, whom the environment or the config names, else the own identity.
func committer(userName, userEmail string) person {
	// git takes a text of spaces for none.
	text := func(variable string) string { return strings.TrimSpace(os.Getenv(variable)) }
	p := person{cmp.Or(text("GIT_AUTHOR_NAME"), text("GIT_COMMITTER_NAME"), strings.TrimSpace(userName)),
		cmp.Or(text("GIT_AUTHOR_EMAIL"), text("GIT_COMMITTER_EMAIL"), strings.TrimSpace(userEmail), text("EMAIL"))}
	if p.name == "" || p.email == "" {
		return ownIdentity
	}
	return p
}

func (p person) env() []string {
	return []string{"GIT_AUTHOR_NAME=" + p.name, "GIT_AUTHOR_EMAIL=" + p.email,
		"GIT_COMMITTER_NAME=" + p.name, "GIT_COMMITTER_EMAIL=" + p.email}
}
