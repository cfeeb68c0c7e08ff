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
		switch kind, content, err := p.readLoose(name, id); {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNoObject):
		case err != nil:
			return err
		default:
			if _, err := writeLoose(filepath.Join(p.repo.common, "objects"), kind, content, len(id)); err != nil {
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

// readLoose reads a loose object (gitformat-loose) and checks that it is the one with the id.
func (p *Private) readLoose(name, id string) (kind string, content []byte, err error) {
	file, err := p.read(name, maxPrivate)
	if isSpoiled(err) {
		return "", nil, errNoObject
	}
	if err != nil {
		return "", nil, err
	}
	z, err := zlib.NewReader(bytes.NewReader(file))
	if err != nil {
		return "", nil, errNoObject
	}
	whole, err := io.ReadAll(io.LimitReader(z, maxPrivate))
	if err != nil {
		return "", nil, errNoObject
	}
	var sum hash.Hash = sha1.New() //nolint:gosec // see above
	if len(id) == sha256.Size*2 {
		sum = sha256.New()
	}
	sum.Write(whole)
	head, content, ok := bytes.Cut(whole, []byte{0})
	kind, _, _ = strings.Cut(string(head), " ")
	if hex.EncodeToString(sum.Sum(nil)) != id || !ok || string(head) != fmt.Sprintf("%s %d", kind, len(content)) {
		return "", nil, errNoObject
	}
	return kind, content, nil
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
