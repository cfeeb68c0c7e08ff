package git

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"muster"
	"muster/internal/durable"
)

// lfsName is the name of the directory in which git-lfs keeps its files, below the common directory: as
// objects/AB/CD/SUM, by the SHA-256 of each. A place has its own, and git-lfs finds those of the repository by its
// alternates.
const lfsName = "lfs"

// MissingFiles returns how many files of git-lfs a commit names that the repository does not have. They are pointers in
// lanes and checks, where nothing is fetched. It is 0 where git-lfs does not run, or keeps its files elsewhere.
func MissingFiles(ctx context.Context, r *Repo, commit string) (n int, err error) {
	if len(r.drivers.armed["filter.lfs"]) == 0 || r.Configured("lfs.storage") != "" {
		return 0, nil
	}
	out, err := r.Run(ctx, r.common, "ls-tree", "-r", "-z", "--full-tree", "--format=%(objectname) %(objectsize)",
		commit)
	if err != nil {
		return 0, err
	}
	// https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md; a pointer with extensions may be longer.
	const head, longest = "version https://git-lfs.github.com/spec/v1\noid sha256:", 200
	var ids []string
	for _, entry := range SplitNUL(out) {
		id, size, _ := strings.Cut(entry, " ")
		if bytes, err := strconv.Atoi(size); err == nil && bytes > len(head) && bytes <= longest {
			ids = append(ids, id)
		}
	}
	blobs, err := Blobs(ctx, r, ids, longest, MaxFile)
	for _, data := range blobs {
		rest, isPointer := strings.CutPrefix(string(data), head)
		if sum, _, ok := strings.Cut(rest, "\n"); isPointer && ok && len(sum) == sha256.Size*2 && IsID(sum) &&
			durable.IsMissing(filepath.Join(r.common, lfsName, "objects", sum[:2], sum[2:4], sum)) {
			n++
		}
	}
	return n, err
}

const maxLFSFiles = 100_000

// filesScript copies the files of git-lfs in the directory $from that $have does not have to $to, with their holes,
// which count as what they are when they are read. find prints no character but those of sums and slashes. No file gets
// longer than it was when it was counted, whatever takes its name meanwhile.
const filesScript = `cd "$from" 2>/dev/null || exit 0
find . ! -name . -name '*[!0-9a-f]*' -prune -o -path './*/*/*' -prune -type f -path './??/??/*' -exec ls -dln {} + |
	awk 'length($NF) == 72 && substr($NF, 9, 4) == substr($NF, 3, 2) substr($NF, 6, 2) { print $5, $NF }' |
	while read -r size name; do
		test -e "$have/$name" || test ! -r "$name" || echo "$size $name"
	done | awk -v most="$max_bytes" -v n="$max_files" '
		(sum += $1) > most || NR > n { exit 3 }
		{ print }' >"$to/list" || exit
while read -r size name; do
	(ulimit -f $((size / 512 + 1)) 2>/dev/null; exec cp -P "$name" "$to") || exit
done <"$to/list"`

// takeFiles makes the files that git-lfs has written in the place files of the repository, by their content.
func (p *Place) takeFiles(ctx context.Context) error {
	from, to := filepath.Join(p.GitDir(), lfsName, "objects"), filepath.Join(p.repo.common, lfsName)
	if len(p.repo.drivers.armed["filter.lfs"]) == 0 || durable.IsMissing(from) {
		return nil
	}
	near := p.repo.common
	if real, err := filepath.EvalSymlinks(to); err == nil && real != to { // it may be on another disk
		near = real
	}
	quarantine, end, err := p.quarantine(ctx, near)
	if err != nil {
		return err
	}
	defer end()
	limited, stop := EndAtPipe(ctx, true, p.repo.inSandbox(p.Dir), from, from)
	_, err = p.repo.confined(limited, Call{Dir: quarantine, Script: filesScript, Args: []string{lfsName}},
		append(p.repo.placeEnv(), "from="+from, "have="+objectsIn(to), "to="+quarantine,
			fmt.Sprint("max_bytes=", MaxUnpacked), fmt.Sprint("max_files=", maxLFSFiles)),
		[]string{quarantine}, []string{p.Dir, to})
	stop()
	if ExitCode(err) == tooManyObjectsCode {
		return muster.Errorf(muster.Invalid, "git-lfs has written more than %d MB or %d files in the lane",
			int64(MaxUnpacked)>>20, maxLFSFiles).
			WithHint("remove those that no commit needs: git lfs prune, in the lane")
	}
	if err != nil {
		return err
	}
	copied, err := os.ReadDir(quarantine)
	for _, e := range copied {
		if err == nil && e.Type().IsRegular() {
			err = takeFile(ctx, filepath.Join(quarantine, e.Name()), objectsIn(to))
		}
	}
	return err
}

// takeFile moves a file to those of git-lfs, unless it has another sum than its name says.
func takeFile(ctx context.Context, name, to string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	defer context.AfterFunc(ctx, func() { _ = file.Close() })() // what is large takes seconds
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	if sum != filepath.Base(name) {
		return nil
	}
	dest := filepath.Join(to, sum[:2], sum[2:4], sum)
	if err := cmp.Or(os.MkdirAll(filepath.Dir(dest), 0o755), file.Chmod(0o444)); err != nil {
		return err
	}
	return os.Rename(name, dest)
}
