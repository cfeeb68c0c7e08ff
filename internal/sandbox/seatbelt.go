package sandbox

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"muster/internal/durable"
	"muster/internal/proc"
	"muster/internal/text"
)

// sandboxExec is a program of macOS, which reads what another one may do from a profile. Apple calls the command
// deprecated and documents no profiles, and has shipped both since 2007; Bazel and Chromium rely on them.
const sandboxExec = "/usr/bin/sandbox-exec"

// startSeatbelt starts the program of s with a profile of the rules.
func startSeatbelt(ctx context.Context, l proc.Launcher, s proc.Spec, r Rules) (proc.Process, error) {
	text, err := r.profile()
	if err != nil {
		return nil, errConfining(err)
	}
	s.Argv = append([]string{sandboxExec, "-p", text}, s.Argv...)
	return l.Start(ctx, s)
}

// findSeatbelt tries sandbox-exec: a program must run, and must not write a file that no rule names.
func findSeatbelt(ctx context.Context) (*Method, error) {
	const remedy = "see docs/sandbox.md, or start with --no-sandbox"
	dir, err := os.MkdirTemp("", "muster-sandbox-")
	defer os.RemoveAll(dir)
	rules, rulesErr := system().profile()
	if err = cmp.Or(err, rulesErr); err != nil {
		return nil, errNone(text.OneLine(err.Error()), remedy)
	}
	file := filepath.Join(dir, "file")
	said, err := try(ctx, []string{sandboxExec, "-p", rules, "/bin/sh", "-c", `(: > "$0") 2>/dev/null; exit 0`, file})
	if err == nil && !durable.IsMissing(file) {
		err = errors.New("it has let a program write where it may not")
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, errNone("sandbox-exec fails: "+strings.TrimSpace(said+" "+text.OneLine(err.Error())), remedy)
	}
	return &Method{Name: "sandbox-exec", Lacks: lackNamespaces, Why: "macOS has no namespaces",
		Start: startSeatbelt}, nil
}

// profileHead is what every program may do. Of the rules in a profile the last one that fits counts.
const profileHead = `(version 1)
(deny default)
(allow process-exec process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow file-read-metadata)
(allow file-read-data (literal "/"))
(allow mach-lookup
  (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership"))
`

// profile returns the rules as a profile of sandbox-exec. The names, sizes and dates of all files can be seen.
func (r Rules) profile() (string, error) {
	var b strings.Builder
	b.WriteString(profileHead)
	for _, path := range append([]string{"/dev/fd"}, devices...) {
		b.WriteString("(allow file-read* file-write* file-ioctl (subpath " + profileString(path) + "))\n")
	}
	there, err := r.here()
	for _, x := range there { // the kernel compares paths without links
		at := "(subpath " + profileString(x.Path) + "))\n"
		switch x.Access {
		case Read:
			b.WriteString("(allow file-read* " + at + "(deny file-write* " + at)
		case Write:
			b.WriteString("(allow file-read* file-write* " + at)
		case Empty, Masked:
			b.WriteString("(deny file-read-data file-read-xattr file-write* " + at)
		}
	}
	return b.String(), err
}

func profileString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
