package git

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// CheckoutStamp is equal for two looks at a checkout between which nothing in it has changed.
type CheckoutStamp [sha256.Size]byte

// maxStamped is how many files and directories a CheckoutStamp covers. For more of them, git is as quick.
const maxStamped = 20_000

// errTooMany ends the walk through a checkout.
var errTooMany = errors.New("there are too many files")

// StampCheckout takes the stamp of the linked worktree at dir: of its files and directories, ignored ones too, and of
// its HEAD, its log and its index. It starts no process. ok is false where it cannot be taken.
func StampCheckout(dir string) (s CheckoutStamp, ok bool) {
	admin := DirOf(dir)
	if admin == "" {
		return s, false
	}
	sum, n := sha256.New(), 0
	for _, name := range []string{"HEAD", "index", filepath.Join("logs", "HEAD")} {
		fmt.Fprintln(sum, name, stampOf(filepath.Join(admin, name)))
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if n++; err == nil && n > maxStamped {
			err = errTooMany
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(sum, "%q %v\n", path, stampOf(path))
		return err
	})
	return CheckoutStamp(sum.Sum(nil)), err == nil
}
