package sandbox

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"muster/internal/landlock"
	"muster/internal/proc"
	"muster/internal/text"
)

// bubblewrap confines programs with bwrap, https://github.com/containers/bubblewrap.
type bubblewrap struct {
	path   string
	user   []string // of users
	filter []byte   // of the calls of the system; nil is none
	ahead  ahead
}

// namespaces are the arguments that give a program namespaces of its own.
//
// A program that may make a user namespace gets all capabilities in it, and with them much more of the kernel to
// attack. The files of /proc/sys belong to root and ask for no capability, so a program of root could name one that the
// kernel starts outside of all namespaces (core_pattern): they are mounted once more, read-only.
var namespaces = []string{"--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
	"--cap-drop", "ALL", "--die-with-parent", "--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"}

// users returns the ways to set the user of a program, the preferred one first. Root's programs stay in the user
// namespace and may open files whatever their modes say, because the repository may belong to another user. All others
// get a user namespace that has their own user only.
func users() [][]string {
	own := []string{"--unshare-user", "--disable-userns"}
	if os.Geteuid() == 0 && landlock.FilterInNamespaces() != nil { // which refuses other namespaces
		return [][]string{{"--cap-add", "CAP_DAC_OVERRIDE"}, own}
	}
	return [][]string{own}
}

// findBubblewrap looks for bwrap, and tries it.
func findBubblewrap(ctx context.Context, env, dirs []string) (*bubblewrap, error) {
	path, _ := proc.FindOutside("bwrap", env, dirs...)
	if path == "" {
		return nil, errNone("bubblewrap is not installed",
			"install it (Debian, Ubuntu: apt install bubblewrap), or start with --no-sandbox")
	}
	b := &bubblewrap{path: path, filter: landlock.FilterInNamespaces(),
		ahead: ahead{asked: map[sandboxID]*request{}}}
	var said string
	var err error
	for _, b.user = range users() {
		if said, err = b.try(ctx); err == nil {
			return b, nil
		}
	}
	_, hasEnded := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case hasEnded:
		said = cmp.Or(said, err.Error())
		return nil, errNone("bubblewrap fails: "+said, remedy(said))
	}
	return nil, errNone("bubblewrap does not start: "+text.OneLine(err.Error()), "see docs/sandbox.md")
}

// try starts a program with the namespaces and the mounts of every command, so that what would stop a command stops it.
func (b *bubblewrap) try(ctx context.Context) (said string, err error) {
	filter, err := b.openFilter()
	if err != nil {
		return "", err
	}
	defer filter.Close()
	return try(ctx, append(b.arguments("/", system()), "/bin/sh", "-c", "exit 0"), filter)
}

// remedy says what to do about what bwrap has said.
func remedy(said string) string {
	// A file that is missing says that the system has no such restriction.
	restricted, _ := os.ReadFile("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
	allowed, err := os.ReadFile("/proc/sys/kernel/unprivileged_userns_clone")
	switch {
	case strings.TrimSpace(string(restricted)) == "1": // Ubuntu 24.04 and later
		return "AppArmor lets only programs with a profile make user namespaces: docs/sandbox.md has one for bwrap"
	case err == nil && strings.TrimSpace(string(allowed)) == "0": // Debian 10 and others
		return "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1"
	case strings.Contains(said, "disable-userns"):
		return "bubblewrap 0.8 or later is needed"
	}
	return "see docs/sandbox.md, or start with --no-sandbox"
}

// start starts the program of s in namespaces of its own, or in those that were made ahead for such a one.
func (b *bubblewrap) start(ctx context.Context, l proc.Launcher, s proc.Spec, r Rules) (proc.Process, error) {
	args := b.arguments(s.Dir, r)
	id := sandboxFor(l, s, args, r)
	return b.ahead.start(ctx, s, id, func(ctx context.Context, s proc.Spec) (proc.Process, error) {
		filter, err := b.openFilter()
		if err != nil {
			return nil, errConfining(err)
		}
		defer filter.Close()
		s.Argv, s.Extra, s.HasNamespace = slices.Concat(args, s.Argv), filter, true
		return l.Start(ctx, s)
	})
}

func (b *bubblewrap) openFilter() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, err = w.Write(b.filter) // a pipe takes that much
	return r, errors.Join(err, w.Close())
}

// arguments returns the arguments that start a program in a directory under the rules, without those of the program.
func (b *bubblewrap) arguments(dir string, r Rules) []string {
	args := slices.Concat([]string{b.path}, namespaces, b.user)
	if b.filter != nil {
		args = append(args, "--seccomp", "3") // the descriptor of proc.Spec.Extra
	}
	// bwrap mounts in the order of its arguments, so that what is below a directory comes after it.
	for _, x := range r.resolved() {
		args = append(args, mount(x)...)
	}
	// The root itself is empty, and what stands in it cannot be added to.
	return append(args, "--remount-ro", "/", "--chdir", dir, "--")
}

func mount(x Rule) []string {
	from := cmp.Or(x.From, x.Path)
	if x.Access == link {
		return []string{"--symlink", from, x.Path}
	}
	// What is not there needs no hiding, and could not be made in a directory that is only read. What the user may not
	// look at is no loss.
	if _, err := os.Stat(from); err != nil && !x.MustExist {
		return nil
	}
	switch x.Access {
	case Empty:
		// It is memory, which only a control group counts.
		size := max(256<<20, proc.MachineMemory()/16)
		return []string{"--size", strconv.FormatInt(size, 10), "--tmpfs", x.Path}
	case Masked:
		return []string{"--ro-bind", os.DevNull, x.Path}
	case Write:
		return []string{"--bind", from, x.Path}
	}
	return []string{"--ro-bind", from, x.Path}
}
