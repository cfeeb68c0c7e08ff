package gittest

import (
	"os"
	"path/filepath"
)

// Home makes dir the home directory of an ordinary developer: "Ann Tester <ann@example.com>" is who commits, and git
// has her aliases, her ignore file and her habits. Nothing of it needs variables of the environment: set HOME to dir,
// and leave XDG_CONFIG_HOME unset or dir/.config. dir may exist already, and its files of the same names are replaced.
func Home(dir string) error {
	for name, file := range homeFiles {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(file.text), file.mode); err != nil {
			return err
		}
	}
	return nil
}

type homeFile struct {
	text string
	mode os.FileMode
}

// homeFiles has the files of Home. Their secrets are none: a test may look whether one of them comes to light.
var homeFiles = map[string]homeFile{
	".gitconfig": {`[user]
	name = Ann Tester
	email = ann@example.com
[alias]
	st = status
	co = checkout
[core]
	excludesFile = ~/.config/git/ignore
[init]
	defaultBranch = main
[pull]
	rebase = true
[gc]
	autoDetach = false
`, 0o644},
	".config/git/ignore":   {".DS_Store\n*.swp\n", 0o644},
	".bashrc":              {". ~/.profile\nalias ll='ls -l'\nPS1='\\w $ '\n", 0o644},
	".profile":             {"export PATH=\"$HOME/.local/bin:$HOME/.cargo/bin:$HOME/go/bin:$PATH\"\n", 0o644},
	".bash_history":        {"git st\nmake\n", 0o600},
	".npmrc":               {"//npm.example.com/:_authToken=npm_token-of-ann\n", 0o600},
	".netrc":               {"machine example.com login ann password netrc-password-of-ann\n", 0o600},
	".ssh/config":          {"Host example.com\n\tUser git\n\tIdentityFile ~/.ssh/id_ed25519\n", 0o600},
	".ssh/id_ed25519":      {"not a key: key-of-ann\n", 0o600},
	".ssh/known_hosts":     {"", 0o600},
	".cargo/bin/cargo":     {"#!/bin/sh\necho cargo 1.90.0\n", 0o755},
	".cargo/config.toml":   {"[net]\ngit-fetch-with-cli = true\n", 0o644},
	".local/bin/tool":      {"#!/bin/sh\necho tool of ann\n", 0o755},
	"go/bin/stringer":      {"#!/bin/sh\necho stringer of ann\n", 0o755},
	".cache/pip/selfcheck": {"{}\n", 0o644},
	"Documents/notes.txt":  {"Buy milk.\n", 0o644},
}
