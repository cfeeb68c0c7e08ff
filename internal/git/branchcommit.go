package git

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
)

// Change is a file in which an index differs from a commit: its new mode and content. The mode "" deletes it.
type Change struct{ Path, Mode, ID string }

// StagedChanges returns the differences between a commit and the index of the worktree at dir, as git prints them, and
// as changes. Errors: Invalid where a file is in conflict.
func StagedChanges(ctx context.Context, r *Repo, dir, commit string) (raw string, all []Change, err error) {
	raw, err = r.Run(ctx, dir, "diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev",
		"--ignore-submodules=none", commit, "--")
	if err != nil {
		return "", nil, err
	}
	// Each is two fields: ":OLDMODE NEWMODE OLDID NEWID STATUS" and the path.
	for entry := range slices.Chunk(SplitNUL(raw), 2) {
		f := strings.Fields(entry[0])
		if len(entry) != 2 || len(f) != 5 || f[4] == "U" || !IsID(f[3]) {
			return "", nil, muster.Errorf(muster.Invalid, "git diff-index answers %q", entry)
		}
		c := Change{Path: entry[1], Mode: f[1], ID: f[3]}
		if f[4] == "D" {
			c.Mode = ""
		}
		all = append(all, c)
	}
	return raw, all, nil
}

// CommitChanges makes a commit of what a branch (refs/heads/...) has at the commit onto and of changes to it, and moves
// the branch there. It does in one process what git commit does after it has looked at each file of the working tree
// once more. dir is the worktree that has the branch checked out; its index and its files stay as they are. The objects
// of the commit stay loose: see Pack.
//
// The error is Unavailable where only git commit can do it, as when the message is no text. Nothing has moved then, and
// neither when git fails because the branch has another commit by now.
func CommitChanges(
	ctx context.Context, r *Repo, dir, branch, onto, message string, changes []Change,
) (commit string, err error) {
	who, ok := committer(r.env)
	if !ok || strings.Contains(message, "\x00") || strings.ToValidUTF8(message, "") != message {
		return "", muster.Errorf(muster.Unavailable, "git fast-import cannot commit this")
	}
	in, now := new(strings.Builder), time.Now()
	message = tidyMessage(message)
	who = fmt.Sprintf("%s %d %s\n", who, now.Unix(), now.Format("-0700"))
	fmt.Fprintf(in, "commit %s\nmark :1\nauthor %scommitter %sdata %d\n%s\nfrom %s\n", branch, who, who, len(message),
		message, onto)
	// What is deleted goes first: a file may come in the place of a directory.
	slices.SortStableFunc(changes, func(a, b Change) int { return min(1, len(a.Mode)) - min(1, len(b.Mode)) })
	for _, c := range changes {
		if c.Mode == "" {
			fmt.Fprintf(in, "D %s\n", quotePath(c.Path))
		} else {
			fmt.Fprintf(in, "M %s %s %s\n", c.Mode, c.ID, quotePath(c.Path))
		}
	}
	in.WriteString("\nget-mark :1\ndone\n")
	out, err := r.Do(ctx, Call{Dir: dir, Stdin: in.String(), Args: []string{"fast-import", "--quiet", "--done"},
		// No limit: in a pack that Pack has not made it would not be synced.
		Settings: []Setting{Set("fastimport.unpackLimit", "2000000000")}})
	if err != nil {
		return "", err
	}
	if commit = strings.TrimSpace(out); commit == "" || !IsID(commit) {
		return "", muster.Errorf(muster.Invalid, "git fast-import answers %q", out)
	}
	r.files.known.Store(commit, true)
	r.commits.note(commit, "author "+who+"committer "+who)
	return commit, nil
}

// committer returns the identity of an environment in the form of a commit. ok is false for one from which git would
// take characters.
func committer(env []string) (who string, ok bool) {
	value := map[string]string{}
	for _, kv := range env {
		key, v, _ := strings.Cut(kv, "=")
		value[key] = v
	}
	name, email := value["GIT_COMMITTER_NAME"], value["GIT_COMMITTER_EMAIL"]
	isPlain := func(s string) bool {
		const stripped = ".,:;<>\"\\'"
		isOdd := func(r rune) bool { return r < ' ' || r == '<' || r == '>' || r == 0x7f }
		return s != "" && strings.Trim(s, stripped+" ") == s && !strings.ContainsFunc(s, isOdd)
	}
	return name + " <" + email + ">", isPlain(name) && isPlain(email) &&
		name == value["GIT_AUTHOR_NAME"] && email == value["GIT_AUTHOR_EMAIL"]
}

// tidyMessage returns a message as git commit --cleanup=whitespace leaves it: without blanks at the end of lines, and
// without empty lines at the beginning, at the end and after another one.
func tidyMessage(message string) string {
	var lines []string
	for line := range strings.Lines(message) {
		line = strings.TrimRight(line, " \t\n\v\f\r")
		if line != "" || len(lines) > 0 && lines[len(lines)-1] != "" {
			lines = append(lines, line)
		}
	}
	if n := len(lines); n > 0 && lines[n-1] == "" {
		lines = lines[:n-1]
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// quotePath quotes a path for git fast-import.
func quotePath(path string) string {
	b := new(strings.Builder)
	for i := range len(path) {
		if c := path[i]; c < ' ' || c == '"' || c == '\\' || c == 0x7f {
			fmt.Fprintf(b, "\\%03o", c)
		} else {
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `"`
}
