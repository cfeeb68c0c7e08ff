package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muster/internal/durable"
)

// The list is made when a checkout is complete, and before anything runs in it. What is on the list is known to be as
// git has written it. Of a directory only the mode counts, because its time changes with what is made in it, and each
// thing in it is looked at by itself.

// fileList has what lies in a checkout by its path: of a file the stamp, which changes with whatever is done to it, and
// of a directory its mode.
type fileList map[string]string

// listFiles makes the list of a checkout, without its .git. A file without a stamp is not in it, and goes.
func listFiles(dir string) fileList {
	list := fileList{}
	// What cannot be read is not in the list.
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, errRel := filepath.Rel(dir, path)
		if err != nil || errRel != nil {
			return nil
		}
		if rel == ".git" {
			return skip(d)
		}
		if stamp := stampOf(path); stamp != "" {
			list[rel] = stamp
		}
		return nil
	})
	return list
}

// skip leaves out a directory, or a file.
func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// stampOf returns the stamp of a file, or the mode of a directory; "" where there is none.
func stampOf(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	if info.IsDir() {
		return dirStamp(info)
	}
	changed, ok := durable.ChangeOf(info)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%v %d %d %s", info.Mode(), info.Size(), info.ModTime().UnixNano(), changed)
}

// dirStamp is the stamp of a directory. What changes in it has stamps of its own.
func dirStamp(info fs.FileInfo) string { return info.Mode().String() }

// errChanged is the error of a checkout that is not the directory that was made.
var errChanged = errors.New("the checkout is another one")

// git clean would not do. It asks the git of the checkout, which a check can write, leaves nested repositories alone,
// and believes the bits of the index by which a change is hidden.

// sweep removes from a checkout what is not as the list says: what a check has made, changed, or hidden from git. Its
// .git always goes, because a check can write there what it wants. An error means that something is left. Nothing is
// removed where a link leads out of the checkout, whoever puts one there meanwhile.
func (l fileList) sweep(dir string) error {
	if known := l["."]; known == "" || known != stampOf(dir) {
		return errChanged // a link perhaps
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.FromSlash(name)
		if known := l[rel]; known != "" && known == stampOf(filepath.Join(dir, rel)) {
			return nil
		}
		if err := durable.RemoveIn(root, rel); err != nil {
			return err
		}
		return skip(d)
	})
}

// maxFileList is how large the list of a checkout may be.
const maxFileList = 256 << 20

// readFileList reads a list.
func readFileList(path string) (l fileList, err error) {
	data, err := durable.ReadRegular(path, maxFileList)
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	return l, err
}

// write writes the list. A reader finds all of it or none.
func (l fileList) write(path string) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(l); err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, b.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
