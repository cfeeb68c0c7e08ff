package code

import (
	"context"
	"path/filepath"
	"slices"

	"muster/internal/git"
	"muster/internal/proc"
)

const (
	minRipgrepFiles = 1000 // fewer are searched before ripgrep has started
	minLiteral      = 3    // bytes of a literal that most files do not contain
	filesAtOnce     = 5000 // that one command line names; where they are too many for the system, ripgrep is not used
)

// narrow leaves the files in which ripgrep finds a match, where that takes less time than searching them here: in many
// files, for an expression without a literal. ripgrep runs as the commands of a member do, confined where these are.
// Where it is missing, does not know the expression, or fails, all files are left.
func (s *search) narrow(ctx context.Context, names []string) []string {
	q, o := s.query, s.tools.options
	if len(names) < minRipgrepFiles || len(q.literal) >= minLiteral || q.spansLines || !s.at.home ||
		s.tools.launcher == nil {
		return names
	}
	spec := proc.Spec{Dir: s.at.root.Name(), Env: Environ(ctx, o.Environ, s.at.root.Name())}
	program, _ := proc.FindOutside("rg", spec.Env, spec.Dir, o.Root)
	if program == "" {
		return names
	}
	// A link could lead anywhere, and a pipe would never end.
	dir := keptDirectory{at: s.at}
	defer dir.close()
	regular := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		fi, err := dir.lstat(name)
		return err != nil || !fi.Mode().IsRegular()
	})
	matching := map[string]bool{}
	for files := range slices.Chunk(regular, filesAtOnce) {
		spec.Argv = []string{program, "--no-config", "--no-ignore", "--no-messages", "--no-mmap", "--text", "--crlf",
			"--encoding=none", "--files-with-matches", "--null", "-e", q.ripgrep, "--"}
		for _, name := range files {
			spec.Argv = append(spec.Argv, s.argument(name))
		}
		var out boundedBuffer
		spec.Out = &out
		p, err := s.tools.launcher.Start(ctx, spec)
		if err != nil {
			return names
		}
		// The status is 1 where no file matches, and 2 where one cannot be read, but also for other errors.
		if exit, err := p.Wait(); err != nil || exit > 2 {
			return names
		}
		for _, name := range git.SplitNUL(out.String()) {
			matching[name] = true
		}
	}
	left := slices.DeleteFunc(regular, func(name string) bool { return !matching[s.argument(name)] })
	if len(left) != len(matching) { // it has printed a message, or a name in which the launcher hides a secret
		return names
	}
	return left
}

// argument returns the name of a file for a command. It is no option, nor -, which is the standard input.
func (s *search) argument(name string) string { return "./" + filepath.ToSlash(s.at.join(name)) }
