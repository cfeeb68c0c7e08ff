package launchers

import (
	"context"
	"fmt"
	"io"
	"os"

	"muster/internal/proc"
)

// Explained returns a launcher that ends the output of a program that fails with a line that says why. explain returns
// the line for a program and the end of its output; "" adds none.
func Explained(l proc.Launcher, explain func(s proc.Spec, output string) string) proc.Launcher {
	return proc.Through(l, func(ctx context.Context, s proc.Spec) (proc.Process, error) {
		if _, isFile := s.Out.(*os.File); isFile || s.Out == nil { // a file is not copied by this process
			return l.Start(ctx, s)
		}
		out := &ending{Writer: s.Out}
		s.Out = out
		started, err := l.Start(ctx, s)
		if err != nil {
			return nil, err
		}
		return proc.Then(started, func(exit int, err error) (int, error) {
			if exit != 0 && err == nil {
				if line := explain(s, string(out.last)); line != "" {
					_, err = fmt.Fprintf(out.Writer, "[%s]\n", line)
				}
			}
			return exit, err
		}), nil
	})
}

// ending keeps the end of an output.
type ending struct {
	io.Writer
	last []byte
}

// Write implements io.Writer.
func (e *ending) Write(p []byte) (int, error) {
	const most = 16 << 10
	e.last = append(e.last, p[max(0, len(p)-most):]...)
	e.last = append(e.last[:0], e.last[max(0, len(e.last)-most):]...)
	return e.Writer.Write(p)
}
