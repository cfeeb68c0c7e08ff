package landing

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"muster/internal/git"
	"muster/internal/lazyregexp"
	"muster/internal/text"
)

// unready matches the subject of a commit that its author did not mean to stay.
var unready = lazyregexp.New(`(?i)^(?:wip\b|fixup!|squash!|amend!|tmp\b|temp\b|checkpoint\b|save\b)`)

// ownMessage returns the message of the commit in which the owner has all of its work, "" where there are several or
// none. A merge commit of the landing keeps the lane's own commits, and so needs no message of theirs.
func (l *landing) ownMessage(ctx context.Context, tip string) (string, error) {
	if len(l.task.Undoes) > 0 || l.options.MergeCommits { // of what is undone, the runtime has made the commit
		return "", nil
	}
	out, err := l.repo.Run(ctx, l.repo.CommonDir(), "log", "-z", "--no-merges", "--max-count=2", "--format=%B",
		"--end-of-options", tip+".."+l.head)
	if err != nil {
		return "", unavailable(ctx, "git cannot read the lane's history", err)
	}
	all := git.SplitNUL(out)
	if len(all) != 1 {
		return "", nil
	}
	own := strings.TrimSpace(text.Clean(plain(all[0])))
	first, _, _ := strings.Cut(own, "\n")
	// The runtime commits what the owner has left, under the task's subject.
	_, trailers := splitTrailers(own)
	if isRuntimes := first == subject(l.task) && len(trailers) == 0; isRuntimes || unready().MatchString(first) {
		return "", nil
	}
	return own, nil
}

// findWords returns what the landed commit is to say.
func (l *landing) findWords(ctx context.Context, tip string) (w words, err error) {
	own, err := l.ownMessage(ctx, tip)
	if err != nil {
		return w, err
	}
	frame, ofFrame := splitTrailers(strings.ReplaceAll(l.options.Message, `\n`, "\n"))
	if frame == "" {
		frame = "{subject}\n\n{body}"
	}
	fill := l.fields()
	w.text = tidyMessage(fill.Replace(frame))
	if own != "" {
		w.text, w.trailers = splitTrailers(own)
	}
	if first, _, _ := strings.Cut(w.text, "\n"); strings.TrimSpace(first) == "" {
		w.text = strings.TrimSpace(subject(l.task) + "\n\n" + w.text)
	}
	for _, line := range ofFrame {
		w.add(text.OneLine(fill.Replace(line)))
	}
	for _, line := range l.templateTrailers() {
		w.add(line)
	}
	if isTrue(l.repo.Configured("format.signoff")) {
		ident, err := l.repo.Run(ctx, l.repo.CommonDir(), "var", "GIT_COMMITTER_IDENT")
		if err != nil {
			return w, unavailable(ctx, "git cannot tell who commits", err)
		}
		if at := strings.LastIndex(ident, ">"); at > 0 { // a time follows
			w.add("Signed-off-by: " + text.OneLine(ident[:at+1]))
		}
	}
	return w, nil
}

// fields puts the values of a landing into the setting landing.message.
func (l *landing) fields() *strings.Replacer {
	return strings.NewReplacer("{subject}", subject(l.task), "{body}", strings.TrimSpace(plain(l.summary)),
		"{task}", strconv.Itoa(int(l.task.ID)), "{owner}", string(l.by), "{model}", text.OneLine(l.owner.Model))
}

// templateTrailers returns the trailers with a value in the user's commit.template, as git's config was when the
// repository was opened. Comments do not count. A template that cannot be read has none.
func (l *landing) templateTrailers() []string {
	const most = 64 << 10
	file := l.repo.Configured("commit.template")
	if file == "" {
		return nil
	}
	if below, ok := strings.CutPrefix(file, "~/"); ok {
		home, _ := os.UserHomeDir()
		file = filepath.Join(home, below)
	} else if !filepath.IsAbs(file) {
		file = filepath.Join(l.repo.Root(), file)
	}
	fi, err := os.Stat(file)
	if err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil
	}
	var lines []string
	for line := range strings.Lines(plain(string(data))) {
		if line = strings.TrimRight(line, " \t\r\n"); strings.HasPrefix(line, "#") {
			continue
		}
		// A trailer without a value is a field for people to fill in. Git would take the trailers beside it for text.
		if bare, isEmpty := strings.CutSuffix(line, ":"); !isEmpty || strings.ContainsAny(bare, " \t") || bare == "" {
			lines = append(lines, line)
		}
	}
	_, trailers := splitTrailers("template\n\n" + strings.TrimSpace(strings.Join(lines, "\n")))
	return trailers
}
