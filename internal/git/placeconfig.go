package git

import (
	"path/filepath"
	"slices"
	"strings"

	"muster/internal/durable"
	"muster/internal/redact"
)

// placeConfig is what git in a place knows of the user's settings and the repository's, as they were when the
// repository was opened.
type placeConfig struct {
	text               string
	users              string    // the user's settings for all repositories alone
	ignore, attributes []byte    // the user's files for all repositories
	secret             []Setting // passwords, which only filters see that the user trusts
}

// foreignSections and foreignKeys are settings that have no use in a place: they name programs, which may not be there,
// passwords, other files, or where the repository is.
var (
	foreignSections = []string{"include", "includeif", "credential", "http", "url", "safe", "gpg",
		"sendemail", "imap", "worktree", "filter", "merge", "maintenance", "gc", "trace2"}
	// usersSections are those of git itself. Of the user's own settings all others are of other programs, which keep
	// tokens there.
	usersSections = []string{"user", "init", "core", "alias", "color", "pull", "push", "rebase", "merge", "diff",
		"status", "commit", "branch", "fetch", "log", "rerere", "tag", "column", "i18n", "advice", "grep", "blame",
		"format", "stash", "switch", "checkout", "help", "transfer", "receive", "apply", "am", "mailmap", "notes",
		"pack", "index", "lfs", "feature", "submodule", "pretty", "versionsort", "author", "committer", "protocol",
		"clean", "clone", "remote", "trailer", "uploadpack"}
	foreignKeys = []string{"core.worktree", "core.bare", "core.hookspath", "core.fsmonitor", "core.sshcommand",
		"core.gitproxy", "core.askpass", "core.excludesfile", "core.attributesfile", "core.alternaterefscommand",
		"core.repositoryformatversion", "core.prefersymlinkrefs", "core.splitindex", "core.untrackedcache",
		"commit.gpgsign", "tag.gpgsign", "tag.forcesignannotated", "user.signingkey", "user.name", "user.email",
		"index.sparse", "feature.manyfiles", "submodule.alternatelocation", "diff.external", "log.showsignature",
		"merge.verifysignatures", "blame.ignorerevsfile", "init.templatedir", "commit.template"}
)

// newPlaceConfig keeps what is of use in a place of a whole config. Members commit as muster does.
func newPlaceConfig(values []scoped, as person, ignore, attributes string) (c placeConfig) {
	kept := []scoped{{key: "gc.auto", value: "0"}, {key: "maintenance.auto", value: "false"}}
	var users []scoped
	version := "0"
	for _, v := range values {
		section, _, _ := strings.Cut(v.key, ".")
		name := v.key[strings.LastIndexByte(v.key, '.')+1:]
		isStyle := v.key == "merge.conflictstyle" || v.key == "merge.ff" || v.key == "merge.renames"
		isProgram := section == "diff" && (name == "textconv" || name == "command")
		switch {
		case v.isUsers() && (v.key == "user.name" || v.key == "user.email"):
			users = append(users, v)
			continue
		case redact.IsCredential(name) && !slices.Contains(foreignSections, section):
			c.secret = append(c.secret, Setting{v.key, v.value})
			continue
		case isProgram, v.isUsers() && !slices.Contains(usersSections, section),
			slices.Contains(foreignKeys, v.key),
			slices.Contains(foreignSections, section) && !isStyle,
			len(redact.InURLs(v.key)) > 0:
			continue
		case section == "extensions":
			if v.key != "extensions.objectformat" && v.key != "extensions.partialclone" {
				continue
			}
			version = "1"
		}
		for _, password := range redact.InURLs(v.value) {
			v.value = strings.ReplaceAll(strings.ReplaceAll(v.value, ":"+password+"@", "@"), password, "")
		}
		if (section == "alias" || v.isUsers()) && len(redact.InText(v.value)) > 0 {
			continue
		}
		kept = append(kept, v)
		if v.isUsers() {
			users = append(users, v)
		}
	}
	c.users = configText(users)
	kept = append(kept, scoped{key: "user.name", value: as.name}, scoped{key: "user.email", value: as.email})
	c.text = configText(append([]scoped{{key: "core.repositoryformatversion", value: version},
		{key: "core.bare", value: "false"}, {key: "core.logallrefupdates", value: "true"}}, kept...))
	for to, from := range map[*[]byte]string{&c.ignore: ignore, &c.attributes: attributes} {
		if real, err := filepath.EvalSymlinks(from); err == nil { // a link in many homes
			*to, _ = durable.ReadRegular(real, maxExclude) // one that cannot be read is none for git either
		}
	}
	return c
}

// UsersConfig returns the user's git settings for all repositories, without passwords and without programs of theirs.
func (c *userConfig) UsersConfig() string { return c.forPlaces.users }

// HooksPath returns the absolute path of the directory that the user has named for hooks; "" where there is none.
func (c *userConfig) HooksPath() string {
	if filepath.IsAbs(c.hooksPath) {
		return c.hooksPath
	}
	return ""
}

func configText(values []scoped) string {
	var b strings.Builder
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`)
	for _, v := range values {
		first, last := strings.IndexByte(v.key, '.'), strings.LastIndexByte(v.key, '.')
		if first < 0 {
			continue
		}
		b.WriteString("[" + v.key[:first])
		if first != last {
			b.WriteString(` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v.key[first+1:last]) + `"`)
		}
		b.WriteString("]\n\t" + v.key[last+1:] + ` = "` + quote.Replace(v.value) + "\"\n")
	}
	return b.String()
}
