package agentfiles

import (
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"muster/internal/paths"
)

// The errors for files that models are not shown.
var (
	// ErrOutside is the error for a path that lies, or leads by a link, outside of the directory that its files may
	// come from.
	ErrOutside = errors.New("it leads out of the repository")
	// ErrKeys is the error for a file whose name says that it may hold keys.
	ErrKeys = errors.New("by its name it may hold keys")
	// ErrState is the error for a file of git's or of muster's own state.
	ErrState = errors.New("it belongs to git or to muster's state")
)

// Resolve returns the path without links of a file that may be read for models, and that path relative to base. The
// file may have changed by the time at which it is opened: open it by these paths, and follow no link. Errors:
// ErrOutside, ErrKeys, ErrState, and those of the system. real is "" if it is not known.
func Resolve(name, base string) (real, rel string, err error) {
	real, err = filepath.EvalSymlinks(name)
	if err != nil {
		return "", "", err
	}
	if base, err = filepath.EvalSymlinks(base); err == nil {
		rel, err = filepath.Rel(base, real)
	}
	if err != nil || !filepath.IsLocal(rel) {
		return real, "", ErrOutside
	}
	return real, rel, checkName(filepath.ToSlash(rel))
}

var (
	documents = []string{".md", ".mdc", ".mdx", ".txt", ".rst", ".adoc"}
	keyFiles  = []string{".pem", ".key", ".p12", ".pfx", ".ppk", ".jks", ".keystore", ".kdbx", ".gpg", ".asc",
		".tfvars", ".tfstate"}
	keyWords = []string{"secret", "credential", "passw", "token", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"}
)

// IsDocument reports whether a name is that of a text for people.
func IsDocument(name string) bool {
	return slices.Contains(documents, strings.ToLower(path.Ext(name)))
}

// checkName refuses what no model is shown unasked: keys, and what git and muster keep. Programs keep keys in files
// whose names begin with a dot, or in such directories, so of these only documents and the rules of other agents are
// read.
func checkName(rel string) error {
	if paths.IsBelow(rel, append([]string{"/.git/"}, paths.Excluded...)) {
		return ErrState
	}
	base := strings.ToLower(path.Base(rel))
	isHidden := slices.ContainsFunc(strings.Split(rel, "/"), func(name string) bool { return name[:1] == "." })
	hasKeyWord := slices.ContainsFunc(keyWords, func(word string) bool { return strings.Contains(base, word) })
	switch {
	case slices.Contains(keyFiles, path.Ext(base)),
		hasKeyWord && (!IsDocument(base) || path.Ext(base) == ".txt"),
		isHidden && rel != "." && !IsDocument(base) && !strings.HasSuffix(base, "rules"):
		return ErrKeys
	}
	return nil
}
