package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// systemDirs have the system's programs, libraries and settings, and varDirs are those of them in /var.
var (
	systemDirs = append([]string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix",
		"/gnu", "/snap", "/sys", "/System", "/Library", "/Applications/Xcode.app", "/private/var/db"}, varDirs...)
	varDirs = []string{"/var/lib/dpkg", "/var/lib/rpm", "/var/lib/alternatives", "/var/lib/ca-certificates",
		"/var/lib/texmf", "/var/cache/fontconfig"}
)

// TemporaryDirs are where all users write. They have sockets of services, too.
var TemporaryDirs = []string{"/tmp", "/var/tmp", "/run", "/dev/shm", "/var/run", "/var/lock"}

// System returns the rules for what every program needs: the system's programs, libraries and settings.
func System() Rules { return append(system(), private()...) }

// system is System without what is private.
func system() Rules {
	// What /run has is sockets of services, which a mount that is read-only does not protect. The addresses of names'
	// servers are of no use without a network, but programs complain when they are missing.
	return slices.Concat(Read.Rules(systemDirs...), Empty.Rules(TemporaryDirs...),
		Read.Rules("/run/systemd/resolve/stub-resolv.conf", "/run/systemd/resolve/resolv.conf",
			"/run/current-system", "/run/opengl-driver")) // of NixOS
}

// forPrograms has the programs and libraries of a Linux system, and what these need of its settings.
var forPrograms = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
	"/run/current-system", "/etc/ld.so.cache", "/etc/alternatives", "/etc/passwd"}

// Programs returns the rules for programs of the system that need hardly any settings. They are a third of those of
// System, and bubblewrap needs time for each.
func Programs() Rules {
	if runtime.GOOS != "linux" {
		return System()
	}
	r := Read.Rules(forPrograms...)
	for _, x := range private() {
		if r.Show(x.Path) {
			r = append(r, x)
		}
	}
	return append(r, Rule{Path: "/tmp", Access: Empty})
}

// Show reports whether a path, with its links followed, is below one that the rules show.
func (r Rules) Show(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	return err == nil && slices.ContainsFunc(r, func(x Rule) bool {
		return x.Access <= Write && IsBelow(x.Path, real)
	})
}

// Homes returns the home directories of all users of this machine.
var Homes = sync.OnceValue(func() (all []string) {
	users, _ := os.ReadFile("/etc/passwd") // not everywhere; then only the usual places are known
	for line := range strings.Lines(string(users)) {
		if fields := strings.Split(line, ":"); len(fields) > 5 && len(fields[5]) > 1 && filepath.IsAbs(fields[5]) {
			all = append(all, filepath.Clean(fields[5]))
		}
	}
	for _, pattern := range []string{"/home/*", "/Users/*"} {
		found, _ := filepath.Glob(pattern) // the patterns are correct
		all = append(all, found...)
	}
	return append(all, "/root")
})

// IsOfSystem reports whether System shows a path.
func IsOfSystem(path string) bool {
	isIn := func(dir string) bool { return IsBelow(dir, path) }
	return slices.ContainsFunc(systemDirs, isIn) &&
		!slices.ContainsFunc(private(), func(x Rule) bool { return isIn(x.Path) })
}

// private returns the rules that hide what is private in the system's directories: files and directories that others
// than their owner and a group may not read, and homes. It looks once: what becomes private later is hidden from the
// next process on. Of /usr it looks only at what administrators put there: all else comes from public packages.
var private = sync.OnceValue(func() (r Rules) {
	dirs := append([]string{"/etc", "/opt", "/usr/local", "/usr/etc"}, varDirs...)
	for _, home := range Homes() {
		if slices.ContainsFunc(dirs, func(dir string) bool { return IsBelow(dir, home) }) {
			r = append(r, Rule{Path: home, Access: Empty})
		}
	}
	uid := os.Geteuid()
	if uid != 0 { // the kernel keeps an ordinary user from nearly all of it
		dirs = dirs[:1]
	}
	return append(r, privateIn(dirs, uid)...)
})

// maxPrivate is how many files are hidden in a directory one by one. One that has more is hidden.
const maxPrivate = 32

// privateIn returns the rules that hide what is private below directories. What an ordinary user cannot read needs
// none, and each costs every command time.
func privateIn(dirs []string, uid int) (r Rules) {
	files := map[string]Rules{}
	look := func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir // it cannot be read, or has gone
		}
		fi, err := d.Info()
		if err != nil || fi.Mode()&fs.ModeSymlink != 0 || fi.Mode().IsRegular() && fi.Size() == 0 { // such as a lock
			return nil
		}
		needed := fs.FileMode(0o004)
		if d.IsDir() {
			needed = 0o001 // who may enter a directory may open what others may read in it
		}
		if fi.Mode()&needed != 0 || uid != 0 && !isReadable(path, fi) {
			return nil
		}
		if d.IsDir() {
			r = append(r, Rule{Path: path, Access: Empty})
			return fs.SkipDir
		}
		dir := filepath.Dir(path)
		files[dir] = append(files[dir], Rule{Path: path, Access: Masked})
		return nil
	}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, look) // look returns no error
	}
	for dir, private := range files {
		if len(private) > maxPrivate {
			private = Rules{{Path: dir, Access: Empty}}
		}
		r = append(r, private...)
	}
	return r
}

// isReadable reports whether this user can read a file or a directory. Opening a pipe would wait.
func isReadable(path string, fi fs.FileInfo) bool {
	if !fi.IsDir() && !fi.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	return err == nil && f.Close() == nil
}

// IsBelow reports whether path is dir, or below it. Nothing is below "".
func IsBelow(dir, path string) bool {
	rel, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return ok && dir != "" && (rel == "" || rel[0] == '/')
}
