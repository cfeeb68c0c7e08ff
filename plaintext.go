package muster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// PlainText returns the text of an error as people read it. The standard library writes for programmers: what it says
// of files, programs, JSON and numbers is put into plain words, wherever in the error it stands. A path that the rest
// of the text names already is not named again. All else stays as it is.
func PlainText(err error) string {
	text := err.Error()
	for _, e := range causes(err) {
		library := e.Error()
		before, after, ok := strings.Cut(text, library)
		if plain := inPlainWords(e, before+after); ok && plain != "" && library != "" {
			text = before + plain + after
		}
	}
	return text
}

// causes returns an error and all that it wraps, the outermost first.
func causes(err error) (all []error) {
	if err == nil {
		return nil
	}
	all = append(all, err)
	// An error wraps one other or several. Both kinds are opened here, because errors.As finds only the first that
	// fits.
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() error }:
		return append(all, causes(e.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, e := range e.Unwrap() {
			all = append(all, causes(e)...)
		}
	}
	return all
}

// inPlainWords returns what one error of the standard library says, in the middle of a text, and "" for all others.
func inPlainWords(err error, rest string) string {
	switch e := err.(type) { //nolint:errorlint // each error of the tree is looked at by itself
	case *fs.PathError:
		return onPath(e.Op, e.Path, e.Err, rest)
	case *os.LinkError:
		return onPath(e.Op, e.New, e.Err, rest)
	case *os.SyscallError:
		return reasonOf(e.Err)
	case *exec.Error:
		if errors.Is(e.Err, exec.ErrNotFound) {
			return fmt.Sprintf("the program %s is not installed, or not in PATH", e.Name)
		}
		return fmt.Sprintf("the program %s cannot be started: %s", e.Name, reasonOf(e.Err))
	// One that a signal has ended keeps its text, which names the signal.
	case *exec.ExitError:
		if e.ProcessState != nil && e.Exited() {
			return fmt.Sprintf("it ended with exit code %d", e.ExitCode())
		}
	case *json.SyntaxError:
		if strings.Contains(rest, "not JSON") {
			return fmt.Sprintf("at byte %d", e.Offset)
		}
		return fmt.Sprintf("it is not JSON, at byte %d", e.Offset)
	case *json.UnmarshalTypeError:
		if e.Field == "" {
			return fmt.Sprintf("it is JSON of another kind: a %s", e.Value)
		}
		return fmt.Sprintf("%q cannot be a %s", e.Field, e.Value)
	case *strconv.NumError:
		return fmt.Sprintf("%q is not a number", e.Num)
	}
	switch err { //nolint:errorlint // as above
	case context.DeadlineExceeded:
		return "it took too long"
	case context.Canceled:
		return "it was stopped"
	}
	return ""
}

// onPath says why something could not be done with a file. rest is the text around it.
func onPath(op, path string, err error, rest string) string {
	reason := reasonOf(err)
	if names(rest, path) || names(rest, filepath.Base(path)) {
		return reason
	}
	does := "cannot read " + path
	switch verb := strings.TrimSuffix(strings.TrimSuffix(op, "at"), "all"); verb {
	case "write", "sync", "truncate", "chmod", "chtimes", "close":
		does = "cannot write " + path
	case "mkdir", "create", "link", "symlink", "createtemp", "mkdirtemp":
		does = "cannot make " + path
	case "rename":
		does = "cannot rename a file to " + path
	case "remove", "unlink", "rmdir":
		does = "cannot remove " + path
	case "fork/exec", "chdir":
		does = "cannot start " + path
	}
	// What is left, such as open, stat and lstat, only looks.
	return does + ": " + reason
}

// names reports whether a text has a path as a word of its own, and not as a part of another path or word.
func names(text, path string) bool {
	const inWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/\\"
	for i := strings.Index(text, path); i >= 0 && path != ""; {
		before, after := text[:i], text[i+len(path):]
		isWord := (before == "" || !strings.ContainsAny(before[len(before)-1:], inWord)) &&
			(after == "" || !strings.ContainsAny(after[:1], inWord))
		if isWord {
			return true
		}
		next := strings.Index(after, path)
		if next < 0 {
			return false
		}
		i += len(path) + next
	}
	return false
}

// reasonOf says why a call of the system failed.
func reasonOf(err error) string {
	// Errors of the system come first: some of them count as those of fs, which say less.
	for _, r := range []struct {
		is   error
		text string
	}{
		{syscall.ENOTDIR, "a part of the path is no directory"},
		{syscall.EISDIR, "it is a directory"},
		{syscall.ENOTEMPTY, "the directory is not empty"},
		{syscall.ENOSPC, "the disk is full"},
		{syscall.EROFS, "the file system is read-only"},
		{syscall.ELOOP, "its symbolic links lead in a circle"},
		{syscall.ENAMETOOLONG, "the name is too long"},
		{syscall.EMFILE, "this process has too many files open"},
		{syscall.EADDRINUSE, "the address is in use"},
		{syscall.ECONNREFUSED, "nothing listens there"},
		{fs.ErrNotExist, "it does not exist"},
		{fs.ErrPermission, "you have no permission"},
		{fs.ErrExist, "it exists already"},
	} {
		if errors.Is(err, r.is) {
			return r.text
		}
	}
	return err.Error()
}
