// Package code holds the tools with which a member works on files: bash, read_file, write_file, edit_file,
// glob, grep, and check_background and stop_background for the commands that bash runs in the background.
//
// All paths are relative to where the member's commands start. The file tools are confined to its working directory
// (os.Root): neither "..", nor an absolute path, nor a link leads out of it. The only exception is the read-only
// directory that a Workdir names. This package does not confine bash.
//
// A Place tells the tools where the member works. Jobs holds its background commands, Output what one
// command prints. These invariants hold:
//   - A tool asks for the working directory at every call and keeps nothing of it but the sums of the files that its
//     model has seen.
//   - A file that is written is replaced as a whole, so a reader never sees half of it.
//   - Whatever a program prints, the model reads valid UTF-8 without control characters, and a bounded amount of it.
//
// The tools by which members work together are in package teamtools.
//
// Read in this order: code.go, confined.go (paths), then the file of any tool.
package code

import (
	"cmp"
	"context"
	"errors"
	"time"

	"muster/internal/proc"
	"muster/internal/prompt"
	"muster/llm"
	"muster/tool"
)

// Place says where a member works. It is asked at every call, because a claim or a landing moves the member.
type Place interface {
	// Workdir returns the working directory. A *muster.Error is told to the model; any other error ends the
	// turn.
	Workdir(ctx context.Context) (Workdir, error)
}

// Workdir is the directory in which a member works now, and what it may do there.
type Workdir struct {
	// Dir is the working directory.
	Dir string
	// Sub is where commands start and relative paths begin, relative to Dir; "" is Dir itself.
	Sub string
	// Writable says that write_file and edit_file may change files below Dir.
	Writable bool
	// Why is what these tools say where nothing is writable, such as "claim a task first".
	Why string
	// ReadOnly are directories that can be read by absolute path, too.
	ReadOnly []string
	// NoImages says that the member's model takes no images.
	NoImages bool
}

// Options are settings of the tools. The zero value has the defaults.
type Options struct {
	// BashTimeout is how long a command may run by default: 120 s. A call may ask for up to 600 s.
	BashTimeout time.Duration
	// syntaxTimeout is another limit than syntaxTimeout, for tests on a busy machine.
	syntaxTimeout time.Duration
	// BackgroundTimeout is the same for a background command: 300 s. A call may ask for up to an hour.
	BackgroundTimeout time.Duration
	// Environ is what commands see of the user's environment. Nil is what proc.Environment lets through of this
	// process's.
	Environ []string
	// Outputs is the directory for outputs that are too long for a result. The default is the system's
	// temporary directory.
	Outputs string
	// Patches adds apply_patch, for models that were trained on it.
	Patches bool
	// MayRun says why the member may not run a command; nil: it may run all.
	MayRun func(command string) error
	// Root is the root of the repository that Outputs lies in. No link below it is followed. "" means in none.
	Root string
}

// The time limits of commands. A command that hangs must not hold up its member for long; a background
// command holds up nobody.
const (
	defaultBashTimeout       = 120 * time.Second
	maxBashTimeout           = 600 * time.Second
	defaultBackgroundTimeout = 300 * time.Second
	maxBackgroundTimeout     = time.Hour
)

// Tools returns all tools of the package, in an order that never changes: it is part of the prefix that
// providers cache. jobs are the member's background jobs.
func Tools(p Place, l proc.Launcher, jobs *Jobs, o Options) []llm.Tool {
	t := newToolset(p, l, jobs, o)
	list := []llm.Tool{
		tool.New("bash", prompt.Tool("bash"), t.bash, tool.NeedsPlan()), // a command can change anything
		t.readTool(),
		tool.Func("write_file", prompt.Tool("write_file"), t.write, tool.NeedsPlan()),
		tool.Func("edit_file", prompt.Tool("edit_file"), t.edit, tool.NeedsPlan()),
		t.globTool(),
		t.grepTool(),
		// It polls: the same answer twice is no sign of a loop.
		tool.Func("check_background", prompt.Tool("check_background"), t.checkBackground, tool.ReadOnly(),
			tool.Polls()),
		tool.Func("stop_background", prompt.Tool("stop_background"), t.stopBackground),
	}
	if o.Patches {
		list = append(list, tool.Func("apply_patch", prompt.Tool("apply_patch"), t.patch, tool.NeedsPlan()))
	}
	return list
}

// ReadTools returns the tools that only read files: read_file, glob and grep. The launcher starts ripgrep; if it is
// nil, grep works without it.
func ReadTools(p Place, l proc.Launcher, o Options) []llm.Tool {
	t := newToolset(p, l, nil, o)
	return []llm.Tool{t.readTool(), t.globTool(), t.grepTool()}
}

// toolset is what the tools of one member work with.
type toolset struct {
	place    Place
	launcher proc.Launcher
	jobs     *Jobs
	options  Options
	seen     *seenFiles
}

// newToolset returns a toolset with the defaults of its options.
func newToolset(p Place, l proc.Launcher, jobs *Jobs, o Options) toolset {
	o.BashTimeout = cmp.Or(max(o.BashTimeout, 0), defaultBashTimeout)
	o.BackgroundTimeout = cmp.Or(max(o.BackgroundTimeout, 0), defaultBackgroundTimeout)
	return toolset{place: p, launcher: l, jobs: jobs, options: o, seen: newSeenFiles()}
}

// workdir asks for the working directory. The model is told when its task was taken away or its lane is
// damaged; every other error is fatal, because the model can do nothing about it.
func (t toolset) workdir(ctx context.Context) (Workdir, error) {
	s, err := t.place.Workdir(ctx)
	if err == nil && s.Dir == "" {
		err = errors.New("the member has no working directory")
	}
	return s, tool.Classify(err)
}

// open finds the path that a call names. The caller closes the root of the result.
func (t toolset) open(ctx context.Context, path string, write bool) (confinedPath, error) {
	s, err := t.workdir(ctx)
	if err != nil {
		return confinedPath{}, err
	}
	return s.open(path, write && !isPreview(ctx))
}
