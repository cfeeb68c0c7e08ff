package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // git's own hash
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// takeObjects moves the objects to the repository: loose ones one by one, and packs whole.
func (p *Private) takeObjects(ctx context.Context, root *os.Root) error {
	dirs, err := fs.ReadDir(root.FS(), "objects")
	// An entry that is a link is none of the directories that git makes.
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if !d.IsDir() || len(d.Name()) != 2 || strings.Trim(d.Name(), "0123456789abcdef") != "" {
			continue
		}
		if err := p.takeLoose(ctx, root, path.Join("objects", d.Name())); err != nil {
			return err
		}
	}
	packs, err := fs.ReadDir(root.FS(), "objects/pack")
	for _, f := range packs {
		if name := path.Join("objects/pack", f.Name()); err == nil && strings.HasSuffix(name, ".pack") {
			err = p.takePack(ctx, root, name)
		}
	}
	return ignoreMissing(err)
}

// takeLoose moves the loose objects of a directory.
func (p *Private) takeLoose(ctx context.Context, root *os.Root, dir string) error {
	if err := clearWay(root, dir); err != nil {
		return err
	}
	files, err := fs.ReadDir(root.FS(), dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		name, id := path.Join(dir, f.Name()), path.Base(dir)+f.Name()
		if err := context.Cause(ctx); err != nil {
			return err
		}
		// A git that writes at this moment has a temporary file.
		if !f.Type().IsRegular() || !IsID(id) {
			continue
		}
		switch object, err := p.readLoose(name, id); {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNoObject):
		case err != nil:
			return err
		default:
			if err := writeLoose(filepath.Join(p.repo.common, "objects"), id, object); err != nil {
				return err
			}
		}
		// It is in the repository, which every command reads too, or it is of no use. A git that has it open reads on.
		if err := root.Remove(name); err != nil {
			return ignoreMissing(err)
		}
	}
	return nil
}

// errNoObject says that a file is not the object that its name says.
var errNoObject = errors.New("no object")

// readLoose reads a loose object (gitformat-loose): its kind, its size and its content. It checks that it is the one
// with the id.
func (p *Private) readLoose(name, id string) (object []byte, err error) {
	file, err := p.read(name, maxPrivate)
	if isSpoiled(err) {
		return nil, errNoObject
	}
	if err != nil {
		return nil, err
	}
	z, err := zlib.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, errNoObject
	}
	object, err = io.ReadAll(io.LimitReader(z, maxPrivate))
	if err != nil {
		return nil, errNoObject
	}
	var sum hash.Hash = sha1.New() //nolint:gosec // see above
	if len(id) == sha256.Size*2 {
		sum = sha256.New()
	}
	sum.Write(object)
	head, content, ok := bytes.Cut(object, []byte{0})
	kind, _, _ := strings.Cut(string(head), " ")
	if hex.EncodeToString(sum.Sum(nil)) != id || !ok || string(head) != fmt.Sprintf("%s %d", kind, len(content)) {
		return nil, errNoObject
	}
	return object, nil
}

// writeLoose writes an object as git does, in a file that is named for its id.
func writeLoose(objects, id string, object []byte) error {
	dir := filepath.Join(objects, id[:2])
	name := filepath.Join(dir, id[2:])
	if _, err := os.Lstat(name); err == nil {
		return nil
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // as git makes it
		return err
	}
	// A name that begins like this is one of git's temporary objects, which git removes when they are old.
	f, err := os.CreateTemp(dir, "tmp_obj_")
	if err != nil {
		return err
	}
	z := zlib.NewWriter(f)
	_, err = z.Write(object)
	err = errors.Join(err, z.Close(), f.Chmod(0o444), f.Close())
	if err == nil {
		// A reader finds the whole object, because it gets its name only now.
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what stays is removed by git
	}
	return err
}

// takePack has git make a pack of the repository of one that a command has written. git hashes each object.
func (p *Private) takePack(ctx context.Context, root *os.Root, name string) error {
	pack, err := p.read(name, maxPrivatePack)
	if err != nil {
		if isSpoiled(err) {
			err = root.RemoveAll(name)
		}
		return ignoreMissing(err)
	}
	_, err = p.repo.Do(ctx, Call{Dir: p.repo.common, Stdin: string(pack), Args: []string{"index-pack", "--stdin"}})
	if err != nil && !isExit(err) { // a pack that git refuses is none
		return err
	}
	for _, suffix := range []string{".idx", ".rev", ".pack"} {
		err := root.Remove(strings.TrimSuffix(name, ".pack") + suffix)
		if ignoreMissing(err) != nil {
			return err
		}
	}
	return nil
}
