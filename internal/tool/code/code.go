// Package code holds the tools with which a member works on files: bash, read_file, write_file, edit_file, glob, grep,
// and check_background and stop_background for what bash runs in the background.
//
// All paths are relative to where the member stands, and the file tools are confined to it (os.Root): neither "..", nor
// an absolute path, nor a link leads out of it, except to read below the roots that the standing names. bash is not
// confined here; that is the sandbox's part.
//
// Read place.go first, then any tool.
package code

import (
	"context"
	"errors"
	"time"

	"muster/internal/proc"
	"muster/llm"
	"muster/tool"
)

// Place is where a member stands; it is asked at every call.
type Place interface {
	Stand(ctx context.Context) (Standing, error)
}

// Standing is where a member stands now.
type Standing struct {
	Dir      string
	Writable bool              // for write_file and edit_file
	Why      string            // what they say where it is not, such as "claim a task first"
	Env      []string          // added to the environment of commands
	ReadOnly map[string]string // named roots: what lies below them can be read by absolute path. "outputs" also gets long outputs
}

// Options are settings of the tools. The zero value has the defaults.
type Options struct {
	BashTimeout       time.Duration // 120 s; a call may ask for up to 600 s
	BackgroundTimeout time.Duration // 300 s
	Outputs           string        // directory for outputs too long for a result; the standing's "outputs", else the system's temporary one
}

const (
	bashTimeout       = 120 * time.Second
	bashTimeoutMost   = 600 * time.Second
	backgroundTimeout = 300 * time.Second
	backgroundMost    = time.Hour
)

// Tools are all tools of the package, in an order that never changes. jobs are the member's background jobs.
func Tools(p Place, l proc.Launcher, jobs *Jobs, o Options) []llm.Tool {
	if o.BashTimeout <= 0 {
		o.BashTimeout = bashTimeout
	}
	if o.BackgroundTimeout <= 0 {
		o.BackgroundTimeout = backgroundTimeout
	}
	t := toolset{place: p, launcher: l, jobs: jobs, options: o}
	return []llm.Tool{t.bash(), t.readFile(), t.writeFile(), t.editFile(), t.glob(), t.grep(), t.checkBackground(), t.stopBackground()}
}

// ReadTools only read: read_file, glob and grep.
func ReadTools(p Place) []llm.Tool {
	t := toolset{place: p}
	return []llm.Tool{t.readFile(), t.glob(), t.grep()}
}

// toolset is what the tools work with.
type toolset struct {
	place    Place
	launcher proc.Launcher
	jobs     *Jobs
	options  Options
}

// stand asks where the member stands. That a task was taken away, or that a lane is not as expected, is the model's to
// know; everything else is the runtime's.
func (t toolset) stand(ctx context.Context) (Standing, error) {
	s, err := t.place.Stand(ctx)
	if err == nil && s.Dir == "" {
		err = errors.New("a member stands nowhere: its standing names no directory")
	}
	return s, tool.Classify(err)
}
