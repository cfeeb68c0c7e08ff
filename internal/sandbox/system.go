package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// System returns the rules for what every program needs: the system's programs, libraries and settings.
func System() Rules {
	var r Rules
	for _, path := range []string{"/tmp", "/var/tmp", "/run", "/dev/shm"} {
		r = append(r, Rule{Path: path, Access: Empty})
	}
	for _, path := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt",
		"/nix", "/gnu", "/snap", "/sys", "/var/lib/dpkg", "/var/lib/rpm", "/var/lib/alternatives",
		"/System", "/Library", "/Applications/Xcode.app", "/private/var/db", // of macOS
		"/var/lib/ca-certificates", "/var/lib/texmf", "/var/cache/fontconfig"} {
		r = append(r, Rule{Path: path})
	}
	// They lead into /run in most systems. Where they are directories, they have sockets of services, too.
	for _, path := range []string{"/var/run", "/var/lock"} {
		x := Rule{Path: path}
		if st, err := os.Lstat(path); err == nil && st.IsDir() {
			x.Access = Empty
		}
		r = append(r, x)
	}
	// Where muster runs as root, the program could read these.
	for _, path := range secretFiles() {
		r = append(r, Rule{Path: path, Access: Masked})
	}
	// What /run has is sockets of services, which a mount that is read-only does not protect. The addresses of names'
	// servers are of no use without a network, but programs complain when they are missing.
	return append(r, Rule{Path: "/run/systemd/resolve/stub-resolv.conf"},
		Rule{Path: "/run/systemd/resolve/resolv.conf"},
		Rule{Path: "/run/current-system"}, Rule{Path: "/run/opengl-driver"}) // of NixOS
}

// secretFiles returns the files below /etc that have secrets, and that this user can read all the same.
func secretFiles() []string {
	all := []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers",
		"/etc/krb5.keytab", "/etc/master.passwd", "/etc/docker/key.json", "/etc/ppp/chap-secrets",
		"/etc/NetworkManager/system-connections"}
	for _, pattern := range []string{"/etc/ssh/ssh_host_*_key", "/etc/ssl/private/*", "/etc/wireguard/*"} {
		found, _ := filepath.Glob(pattern) // the patterns are correct
		all = append(all, found...)
	}
	return slices.DeleteFunc(all, func(path string) bool {
		st, err := os.Stat(path)
		if err != nil || !st.Mode().IsRegular() { // a directory cannot be masked by a file
			return true
		}
		f, err := os.Open(path) // what this user cannot read needs no rule, which would cost each command time
		return err != nil || f.Close() != nil
	})
}

// homeTools are what toolchains keep in the home directory and programs need of it. What has passwords or keys is
// not among them: .cargo/credentials.toml, .m2/settings.xml, .npmrc, .gradle/gradle.properties, .config, .ssh.
var homeTools = []string{".asdf", ".bun/bin", ".bun/install", ".cabal/bin", ".cabal/packages", ".cabal/store",
	".cargo/bin", ".cargo/env", ".cargo/git", ".cargo/registry", ".composer/vendor", ".deno/bin", ".dotnet", ".elan",
	".gem", ".ghcup", ".gradle/caches", ".gradle/wrapper", ".hex", ".jenv", ".juliaup", ".local/bin", ".local/lib",
	".local/pipx", ".local/share/fnm", ".local/share/mise", ".local/share/pipx", ".local/share/pnpm",
	".local/share/uv", ".local/share/virtualenvs", ".m2/repository", ".mix", ".nix-profile", ".nvm", ".nodenv",
	".opam", ".phpenv", ".pub-cache", ".pyenv", ".rbenv", ".rustup", ".rvm", ".sdkman", ".stack/programs",
	".stack/snapshots", ".swiftly", ".volta", ".yarn", ".nuget/packages", "go/bin", "go/pkg", "go/src", "sdk",
	"miniconda3", "miniforge3", "anaconda3", ".conda/envs", ".conda/pkgs", ".fly/bin", ".krew/bin"}

// Home returns the rules for the user's home directory: nothing of it is there but the toolchains, and what a program
// writes there goes with it.
func Home(dir string) Rules {
	if dir == "" || dir == string(filepath.Separator) || !filepath.IsAbs(dir) {
		return nil
	}
	r := Rules{{Path: dir, Access: Empty}}
	for _, name := range homeTools {
		r = append(r, Rule{Path: filepath.Join(dir, filepath.FromSlash(name))})
	}
	return r
}

// MakeHome makes a home directory at name below dir, with links to what a user's home directory has of toolchains. It
// is for programs that cannot be shown an empty one in the place of the user's. Programs may have written in dir: no
// link is followed.
func MakeHome(dir, name, home string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(name, 0o700); err != nil {
		return err
	}
	for _, tool := range homeTools {
		target, link := filepath.Join(home, filepath.FromSlash(tool)), filepath.Join(name, filepath.FromSlash(tool))
		if _, err := os.Stat(target); err != nil {
			continue
		}
		if err := root.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			return err
		}
		if err := root.Symlink(target, link); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// Toolchains returns the rules for the programs and the toolchains that an environment names outside of the system: the
// directories in its PATH, and what variables such as GOROOT say. In the home directory only what Home has is there: a
// variable may lead anywhere.
func Toolchains(env []string, home string) (r Rules) {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		var dirs []string
		switch {
		case name == "PATH":
			for _, dir := range filepath.SplitList(value) {
				// The libraries of a program stand beside its directory in most installations.
				if parent := filepath.Dir(dir); isPrefix(dir) && parent != "/" && parent != home {
					dir = parent
				}
				dirs = append(dirs, dir)
			}
		case slices.Contains(toolVariables, name):
			dirs = filepath.SplitList(value)
		}
		for _, dir := range dirs {
			if filepath.IsAbs(dir) && filepath.Clean(dir) != "/" && !isBelow(home, dir) {
				r = append(r, Rule{Path: dir})
			}
		}
	}
	return r
}

// toolVariables name directories with toolchains, and caches of modules that are read.
var toolVariables = []string{"GOROOT", "GOPATH", "GOMODCACHE", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "NVM_DIR",
	"PYENV_ROOT", "RBENV_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX", "NODE_PATH", "PYTHONPATH", "GEM_HOME", "GEM_PATH",
	"ANDROID_HOME", "DOTNET_ROOT", "FLUTTER_ROOT", "SDKMAN_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "VOLTA_HOME",
	"PNPM_HOME", "DENO_INSTALL", "BUN_INSTALL", "JULIA_DEPOT_PATH", "OPAMROOT"}

// isPrefix reports whether a directory of programs is one of an installation, with its libraries beside it.
func isPrefix(dir string) bool {
	return slices.Contains([]string{"bin", "sbin", "shims"}, filepath.Base(dir))
}

// isBelow reports whether path is dir, or below it. Nothing is below "".
func isBelow(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && filepath.IsLocal(rel)
}
