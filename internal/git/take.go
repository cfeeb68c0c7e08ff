package git

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
)

// What members have made becomes the repository's by its content. A confined git packs the objects, another one, which
// can write nothing but an empty directory, unpacks, hashes and checks each of them, and only then do they move to the
// repository's. So only confined programs read what members have written.

// MaxUnpacked is how many bytes the objects may have that are taken over at once.
const MaxUnpacked = 4 << 30

const (
	// maxTaken is how many bytes their pack may have.
	maxTaken = 1 << 30
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

func objectsIn(gitDir string) string { return filepath.Join(gitDir, "objects") }

// makeObjectDir makes a directory among objects, for the users that may write there: core.sharedRepository names some.
func makeObjectDir(objects, dir string) error {
	if !durable.IsMissing(dir) {
		return nil
	}
	if err := (durable.OS{}).Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	st, err := os.Stat(objects)
	if err != nil {
		return err
	}
	return os.Chmod(dir, st.Mode())
}

// TakeObjects makes the commits and trees of the ids objects of the repository, with all that they need beyond have.
// Errors: Invalid where an object is none, or names what must not land; Unavailable.
func (p *Place) TakeObjects(ctx context.Context, ids, have []string) error {
	if err := p.takeFiles(ctx); errors.Is(err, muster.ErrInvalid) {
		return err
	} else if err != nil {
		return muster.Errorf(muster.Unavailable, "the files of git-lfs cannot be taken over: %w", err)
	}
	return p.Take(ctx, "", p.repo.common, ids, have)
}

// Take is TakeObjects from the repository at dir, which lies in the working tree, to the objects of the git directory
// to. dir "" is the place itself.
func (p *Place) Take(ctx context.Context, dir, to string, ids, have []string) error {
	if slices.ContainsFunc(ids, func(id string) bool { return id == "" || !IsID(id) }) {
		return muster.Errorf(muster.Invalid, "%q are no ids of objects", ids)
	}
	quarantine, end, err := p.quarantine(ctx, to)
	if err != nil {
		return err
	}
	defer end()
	if err := os.Mkdir(filepath.Join(quarantine, "pack"), 0o700); err != nil {
		return err
	}
	packed := quarantine + ".pack"
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
	fresh := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(have, id) })
	if err := p.unpack(ctx, file, quarantine, to, fresh); err != nil {
		return err
	}
	return moveIn(quarantine, to)
}

// quarantine makes an empty directory in a git directory, on the disk of its objects: they need only be renamed. end
// removes it.
func (p *Place) quarantine(ctx context.Context, to string) (dir string, end func(), err error) {
	dir = filepath.Join(to, "muster", "quarantine", filepath.Base(filepath.Dir(p.Dir)), filepath.Base(p.Dir))
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", nil, err
	}
	unlock, err := durable.New(durable.OS{Root: to}).Lock(ctx, dir+".lock")
	if err != nil {
		return "", nil, err
	}
	end = func() { _ = durable.RemoveAll(dir); unlock() }
	if err = durable.RemoveAll(dir); err == nil { // of a process that was killed
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		end()
	}
	return dir, end, err
}

// SizeOf returns how many bytes the regular files of a working tree have together, and which of them is the largest.
func SizeOf(dir string, files []string) (size int64, largest string) {
	most := int64(0)
	for _, file := range files {
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if size += info.Size(); info.Size() > most {
			largest, most = file, info.Size()
		}
	}
	return size, largest
}

func quoteList(path string) string {
	if !strings.ContainsAny(path, string(filepath.ListSeparator)+`"\`) {
		return path
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}

// pack has git write the objects to a file.
func (p *Place) pack(ctx context.Context, dir string, file io.Writer, to string, ids, have []string) error {
	in := strings.Join(ids, "\n") + "\n"
	for _, id := range have {
		in += "^" + id + "\n"
	}
	if len(have) > 0 { // git leaves out what a commit has that is taken with its parents, and not what a tree has
		in += "^" + have[0] + "^{tree}\n"
	}
	_, err := p.Do(ctx, Call{Dir: dir, Stdin: in, ReadsTree: true, Out: file, MaxOut: maxTaken,
		Script: packScript, Args: []string{"rev-list", "--objects", "--no-object-names", "--stdin"},
		Env: append(slices.Clip(takeLimits), "ids="+filepath.Join(p.GitDir(), "ids-"+filepath.Base(to)))})
	switch {
	case ExitCode(err) == tooManyObjectsCode || errors.Is(err, ErrTooMuch):
		return errTooManyObjects
	case isExit(err):
		return muster.Errorf(muster.Invalid, "what the git of the lane has written cannot be taken over: %w", err).
			WithHint("git fsck, in the lane")
	}
	return err
}

// The scripts below end with these codes where there is too much.
const tooManyObjectsCode, tooManyFilesCode = 3, 4

// takeLimits tells the scripts below how much is too much.
var takeLimits = []string{fmt.Sprint("max_bytes=", MaxUnpacked), fmt.Sprint("max_objects=", maxTakenObjects),
	fmt.Sprint("max_files=", maxTakenFiles), fmt.Sprint("max_path=", maxPath)}

// packScript packs the objects that git finds: it tells the size of an object by its head, without unpacking it. The
// ids are in the file $ids meanwhile.
const packScript = `trap 'rm -f "$ids"' EXIT
git "$@" >"$ids" || exit
git cat-file --buffer --batch-check='%(objectsize)' <"$ids" | awk -v most="$max_bytes" -v n="$max_objects" '
	!/^[0-9]+$/ || (sum += $1) > most || NR > n { exit 3 }' || exit 3
git pack-objects --stdout --delta-base-offset -q --window=0 <"$ids"`

// unpackScript unpacks objects, and refuses what would be too much for its readers: too many or too large
// objects, and trees that name too many files. git ls-tree prints while it walks, so that a tree which names others
// again and again ends here. What no entry of a tree can be named tells where one begins, and where git fails.
const unpackScript = `git "$@" || exit
GIT_ALTERNATE_OBJECT_DIRECTORIES= git cat-file --batch-all-objects --unordered --buffer \
	--batch-check='%(objectsize)' | awk -v most="$max_bytes" -v n="$max_objects" '
	(sum += $1) > most || NR > n { exit 3 }' || exit 3
for id in $ids; do
	printf '\0'
	git ls-tree -r -t -z --name-only --full-tree "$id" || printf '/\0'
done | tr '\n\000' '_\n' | awk -v most="$max_path" -v n="$max_files" '
	$0 == "" { files = 0; next }
	$0 == "/" { exit 1 }
	length > most || ++files > n { exit 4 }'`

// errTooManyObjects says that more was committed than anybody means to commit.
var errTooManyObjects = muster.Errorf(muster.Invalid, "what was committed has more than %d MB or %d objects",
	int64(MaxUnpacked)>>20, maxTakenObjects)

// unpack has a git that can write only the quarantine unpack and check the objects, and the trees of the ids.
func (p *Place) unpack(ctx context.Context, file *os.File, quarantine, to string, ids []string) error {
	check := "--strict=" + lenient
	if p.repo.isPartial {
		check = "--fsck-objects" // objects may be missing
	}
	args := []string{"index-pack", check, "--stdin", "--index-version=2"}
	if isSmall(file) && !p.repo.isPartial { // each pack costs every git that reads objects
		args = []string{"unpack-objects", check, "-q"}
	}
	settings := append(slices.Clip(always), Setting{"core.bigFileThreshold", "16m"}, Setting{"pack.threads", "1"})
	env := slices.Concat(p.repo.placeEnv(), SettingsEnv(nil, settings...), takeLimits, []string{"GIT_DIR=" + p.Dir,
		"GIT_OBJECT_DIRECTORY=" + quarantine, "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quoteList(objectsIn(to)),
		"ids=" + strings.Join(ids, " ")})
	_, err := p.repo.confined(ctx, Call{Dir: quarantine, In: file, Script: unpackScript, Args: args}, env,
		[]string{quarantine}, []string{p.Dir, objectsIn(to)})
	switch {
	case ExitCode(err) == tooManyObjectsCode:
		return errTooManyObjects
	case ExitCode(err) == tooManyFilesCode:
		return muster.Errorf(muster.Invalid, "what was committed has more than %d files and directories, or "+
			"one with a name of more than %d bytes", maxTakenFiles, maxPath)
	case isExit(err):
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

// moveIn moves the objects of a quarantine to those of a repository. A pack counts for git when its index is there.
func moveIn(quarantine, to string) error {
	objects := objectsIn(to)
	for _, isIndex := range []bool{false, true} {
		err := fs.WalkDir(os.DirFS(quarantine), ".", func(name string, d fs.DirEntry, err error) error {
			dir := path.Dir(name)
			if err != nil || d.IsDir() || len(dir) != 2 && dir != "pack" || (path.Ext(name) == ".idx") != isIndex {
				return err
			}
			from, dest := filepath.Join(quarantine, name), filepath.Join(objects, name)
			return errors.Join(makeObjectDir(objects, filepath.Dir(dest)), os.Rename(from, dest))
		})
		if err != nil {
			return muster.Errorf(muster.Unavailable, "objects cannot be moved to the repository: %w", err)
		}
	}
	return (durable.OS{}).SyncDir(filepath.Join(objects, "pack"))
}
