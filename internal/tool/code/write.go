package code

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muster/llm"
	"muster/tool"
)

type writeInput struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (t toolset) writeFile() llm.Tool {
	return tool.New("write_file", "Write a whole file: a new one, or all of one. To change a part, use edit_file.",
		func(ctx context.Context, in writeInput) (llm.Result, error) {
			s, err := t.stand(ctx)
			if err != nil {
				return tool.FromError(err)
			}
			at, err := s.at(in.Path, true)
			if err != nil {
				return tool.FromError(err)
			}
			defer at.close()
			verb := "Wrote"
			switch fi, err := at.root.Stat(at.rel); {
			case errors.Is(err, fs.ErrNotExist):
				verb = "Made"
			case err != nil:
				return tool.FromError(at.why(err))
			case fi.IsDir():
				return tool.FromError(at.isDir())
			case !fi.Mode().IsRegular():
				return llm.ErrorResult("%s is not a file but a %s.", at.show, special(fi.Mode())), nil
			}
			if err := replace(at, []byte(in.Content)); err != nil {
				return tool.FromError(at.why(err))
			}
			return tool.Text(fmt.Sprintf("%s %s: %s.", verb, at.show, count(lineCount([]byte(in.Content)), "line"))), nil
		}, tool.NeedsPlan())
}

// replace writes data to a file that is there, which keeps its mode, or to a new one, whose directories are made.
// Whoever reads it meanwhile sees the old content or the new.
func replace(at confinedPath, data []byte) (err error) {
	mode := fs.FileMode(0)
	if fi, err := at.root.Stat(at.rel); err == nil {
		mode = fi.Mode().Perm()
	} else if err := at.root.MkdirAll(filepath.Dir(at.rel), 0o777); err != nil {
		return err
	}
	temp := filepath.Join(filepath.Dir(at.rel), ".write-"+rand.Text())
	f, err := at.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = at.root.Remove(temp)
		}
	}()
	_, err = f.Write(data)
	if mode != 0 {
		err = errors.Join(err, f.Chmod(mode))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return at.root.Rename(temp, at.rel)
}

func lineCount(data []byte) int {
	n := bytes.Count(data, []byte("\n"))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
