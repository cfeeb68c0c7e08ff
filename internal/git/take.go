package git

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
)

// What members have made becomes the repository's by its content. A confined git packs the objects, another one, which
// can write nothing but an empty directory, unpacks, hashes and checks each of them, and only then do they move to the
// repository's. So nobody reads what members have written but programs that can do no harm.

const (
	// maxTaken is how many bytes a pack may have that is taken over, and MaxUnpacked its objects together.
	maxTaken, MaxUnpacked = 1 << 30, 4 << 30
	// maxTakenObjects is how many objects it may have, and maxTakenFiles how many files a tree.
	maxTakenObjects, maxTakenFiles = 2_000_000, 1_000_000
	// maxPath is how many bytes a name of a file may have, with all directories.
	maxPath = 4 << 10
)

// lenient is what commits and trees of old programs have and what does no harm.
const lenient = "zeroPaddedFilemode=ignore,badFilemode=ignore,missingEmail=ignore,missingNameBeforeEmail=ignore," +
	"missingSpaceBeforeEmail=ignore,missingSpaceBeforeDate=ignore,badEmail=ignore,badName=ignore,badDate=ignore," +
	"badDateOverflow=ignore,badTimezone=ignore,zeroPaddedDate=ignore,multipleAuthors=ignore,nulInCommit=ignore," +
	"missingTaggerEntry=ignore,badTagName=ignore,gitmodulesParse=ignore"

// Objects says where objects become a repository's: GitDir is the git directory that has the directory objects.
type Objects struct{ GitDir string }

// dir returns the directory in which the objects are.
func (o Objects) dir() string { return filepath.Join(o.GitDir, "objects") }

// TakeObjects makes the commits and trees of the ids objects of the repository, with all that they need beyond have.
// Errors: Invalid where an object is none, or names what must not land; Unavailable.
func (p *Place) TakeObjects(ctx context.Context, ids, have []string) error {
	if err := p.takeFiles(ctx); err != nil {
		return muster.Errorf(muster.Unavailable, "the files of git-lfs cannot be taken over: %w", err)
	}
	return p.Take(ctx, "", Objects{p.repo.common}, ids, have)
}

// Take is TakeObjects from the repository at dir, which lies in the working tree, to other objects. dir "" is the place
// itself.
func (p *Place) Take(ctx context.Context, dir string, to Objects, ids, have []string) error {
	// On the disk of the objects, so that they need only be renamed.
	quarantine := filepath.Join(to.GitDir, "muster", "quarantine", filepath.Base(filepath.Dir(p.Dir)),
		filepath.Base(p.Dir))
	if err := os.MkdirAll(filepath.Dir(quarantine), 0o700); err != nil {
		return err
	}
	unlock, err := durable.New(durable.OS{Root: to.GitDir}).Lock(ctx, quarantine+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	packed := quarantine + ".pack"
	if err := durable.RemoveAll(quarantine); err != nil {
		return err
	}
	defer func() { _ = durable.RemoveAll(quarantine) }()
	if err := os.MkdirAll(filepath.Join(quarantine, "pack"), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(packed, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _, _ = file.Close(), os.Remove(packed) }()
	if err := p.pack(ctx, dir, file, to, ids, have); err != nil {
		return err
	}
	const empty = 12 + 20 // bytes of a pack without objects, of SHA-1
	if st, err := file.Stat(); err != nil || st.Size() <= empty {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	env := []string{"GIT_OBJECT_DIRECTORY=" + quarantine,
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quoteList(to.dir())}
	if err := p.unpack(ctx, file, quarantine, to, env); err != nil {
		return err
	}
	fresh := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(have, id) })
	if err := p.checkTaken(ctx, env, fresh); err != nil {
		return err
	}
	return moveIn(p.repo.common, quarantine, to)
}

// quoteList quotes a path for a list of directories of git's.
func quoteList(path string) string {
	if !strings.ContainsAny(path, string(filepath.ListSeparator)+`"\`) {
		return path
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}

// pack has git write the objects to a file.
func (p *Place) pack(ctx context.Context, dir string, file io.Writer, to Objects, ids, have []string) error {
	in := strings.Join(ids, "\n") + "\n"
	for _, id := range have {
		in += "^" + id + "\n"
	}
	if len(have) > 0 { // git leaves out what a commit has that is taken with its parents, and not what a tree has
		in += "^" + have[0] + "^{tree}\n"
	}
	_, err := p.Do(ctx, Call{Dir: dir, Stdin: in, ReadsTree: true, Out: &limitedWriter{w: file, left: maxTaken},
		Script: packScript, Args: []string{fmt.Sprint(MaxUnpacked), fmt.Sprint(maxTakenObjects),
			filepath.Join(p.GitDir(), "ids-"+filepath.Base(to.GitDir))}})
	switch {
	case ExitCode(err) == tooMuchCode:
		return errTooManyObjects
	case isExit(err):
		return muster.Errorf(muster.Invalid, "what the git of the lane has written cannot be taken over: %w", err).
			WithHint("git fsck, in the lane")
	}
	if errors.Is(err, errTooMuch) {
		return errTooManyObjects
	}
	return err
}

// packScript packs the objects that git rev-list finds by its input, unless they are more than $1 bytes or $2 objects:
// git tells the size of an object by its head, without unpacking it. The ids are in the file $3 meanwhile.
const packScript = `trap 'rm -f "$3"' EXIT
git rev-list --objects --no-object-names --stdin >"$3" || exit
git cat-file --buffer --batch-check='%(objectsize)' <"$3" | awk -v most="$1" -v n="$2" '
	!/^[0-9]+$/ || (sum += $1) > most || NR > n { exit 3 }' || exit 3
git pack-objects --stdout --delta-base-offset -q --window=0 <"$3"`

// tooMuchCode is the exit code of packScript where there is too much.
const tooMuchCode = 3

// errTooManyObjects says that more was committed than anybody means to.
var errTooManyObjects = muster.Errorf(muster.Invalid, "what was committed has more than %d MB or %d objects",
	int64(MaxUnpacked)>>20, maxTakenObjects)

// limitedWriter fails beyond a limit.
type limitedWriter struct {
	w    io.Writer
	left int64
}

func (l *limitedWriter) Write(data []byte) (int, error) {
	if l.left -= int64(len(data)); l.left < 0 {
		return 0, errTooMuch
	}
	return l.w.Write(data)
}

// unpack has a git that can write only the quarantine unpack and check the objects.
func (p *Place) unpack(ctx context.Context, file *os.File, quarantine string, to Objects, env []string) error {
	check := "--strict=" + lenient
	if p.repo.isPartial {
		check = "--fsck-objects" // objects may be missing
	}
	args := []string{"index-pack", check, "--stdin", "--index-version=2"}
	if isSmall(file) && !p.repo.isPartial { // each pack costs every git that reads objects
		args = []string{"unpack-objects", check, "-q"}
	}
	_, err := p.repo.confined(ctx, Call{Dir: quarantine, In: file, Args: args},
		slices.Concat(p.repo.placeEnv(), settingsEnv(slices.Concat(always, []Setting{
			{"core.bigFileThreshold", "16m"}, {"pack.threads", "1"}})), env, []string{"GIT_DIR=" + p.Dir}),
		[]string{quarantine}, []string{p.Dir, to.dir()})
	if isExit(err) {
		return muster.Errorf(muster.Invalid, "what was committed cannot be taken over: %w", err).
			WithHint("git fsck --strict, in the lane")
	}
	return err
}

// isSmall reports whether a pack has few objects, as a receiving git decides whether they become a pack.
func isSmall(file *os.File) bool {
	const most, mostBytes = 100, 4 << 20
	head := make([]byte, 12) // PACK, the version, and how many objects there are
	st, err := file.Stat()
	if _, readErr := file.ReadAt(head, 0); err != nil || readErr != nil {
		return false
	}
	return st.Size() < mostBytes && binary.BigEndian.Uint32(head[8:]) < most
}

// checkTaken refuses what would be too much for whoever unpacks it: too many or too large objects, and trees that name
// too many files. The objects are what their ids say. git has the user's rights here, so it is not given the place.
func (p *Place) checkTaken(ctx context.Context, env, ids []string) error {
	objects, bytes := int64(0), int64(0)
	count := lineWriter(func(line string) error {
		var size int64
		if _, err := fmt.Sscan(line, &size); err != nil {
			return err
		}
		if objects, bytes = objects+1, bytes+size; objects > maxTakenObjects || bytes > MaxUnpacked {
			return errTooMuch
		}
		return nil
	})
	alone := env[:1] // without the repository's objects, which may be very many
	if _, err := p.repo.Do(ctx, Call{Dir: p.repo.common, Env: alone, Out: count.end('\n'), Args: []string{"cat-file",
		"--batch-all-objects", "--unordered", "--buffer", "--batch-check=%(objectsize)"}}); err != nil {
		return p.takenError(ctx, err, errTooManyObjects)
	}
	tooMuch := muster.Errorf(muster.Invalid, "what was committed has more than %d files, or one with a name of more "+
		"than %d bytes", maxTakenFiles, maxPath)
	for _, id := range ids {
		files := 0
		names := lineWriter(func(name string) error {
			if files++; files > maxTakenFiles || len(name) > maxPath {
				return errTooMuch
			}
			return nil
		})
		// git ls-tree prints while it walks, so that a tree which names itself again and again ends here.
		if _, err := p.repo.Do(ctx, Call{Dir: p.repo.common, Env: env, Out: names.end(0),
			Args: []string{"ls-tree", "-r", "-z", "--name-only", "--full-tree", id}}); err != nil {
			return p.takenError(ctx, err, tooMuch)
		}
	}
	return nil
}

// takenError returns the error of a git that was stopped because there is too much, or that failed.
func (p *Place) takenError(ctx context.Context, err, tooMuch error) error {
	switch {
	case errors.Is(err, errTooMuch):
		return tooMuch
	case isExit(err) && ctx.Err() == nil:
		return muster.Errorf(muster.Invalid, "what was committed cannot be read: %w", err).
			WithHint("git fsck, in the lane")
	}
	return err
}

// lineWriter is called with each line, or entry, that is written.
type lineWriter func(line string) error

// end returns the writer for lines that end with a byte.
func (f lineWriter) end(last byte) io.Writer { return &lines{f: f, last: last} }

type lines struct {
	f    lineWriter
	last byte
	rest []byte
}

// Write fails with the first error, and at a line that is longer than any.
func (l *lines) Write(data []byte) (int, error) {
	l.rest = append(l.rest, data...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte{l.last})
		if !ok {
			break
		}
		if err := l.f(string(line)); err != nil {
			return 0, err
		}
		l.rest = rest
	}
	if len(l.rest) > maxPath {
		return 0, errTooMuch
	}
	return len(data), nil
}

// moveIn moves the objects of a quarantine to those of a repository. A pack counts for git when its index is there.
func moveIn(common, quarantine string, to Objects) error {
	err := filepath.WalkDir(quarantine, func(path string, d fs.DirEntry, err error) error {
		dir := filepath.Base(filepath.Dir(path))
		if err != nil || d.IsDir() || len(dir) != 2 {
			return err
		}
		dest := filepath.Join(to.dir(), dir, d.Name())
		return errors.Join(os.MkdirAll(filepath.Dir(dest), 0o755), os.Rename(path, dest))
	})
	if err != nil {
		return muster.Errorf(muster.Unavailable, "objects cannot be moved to the repository: %w", err)
	}
	from, dest := filepath.Join(quarantine, "pack"), filepath.Join(to.dir(), "pack")
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b fs.DirEntry) int { return strings.Compare(order(a), order(b)) })
	for _, f := range files {
		if err := os.Rename(filepath.Join(from, f.Name()), filepath.Join(dest, f.Name())); err != nil {
			return muster.Errorf(muster.Unavailable, "objects cannot be moved to the repository: %w", err)
		}
		if name, ok := strings.CutSuffix(f.Name(), ".pack"); ok && to.GitDir == common {
			packDir(common).note(name)
		}
	}
	return (durable.OS{}).SyncDir(dest)
}

// order returns what sorts the files of a pack so that its index comes last.
func order(f fs.DirEntry) string {
	if filepath.Ext(f.Name()) == ".idx" {
		return "~"
	}
	return f.Name()
}
