// Package toolsettings finds the settings that package managers, version managers and compilers keep in the user's home
// directory, and takes from them what says where packages come from, how a server is reached, and which versions are
// used. Confined programs see that; of the files themselves, which often have credentials, they see nothing.
//
// Comments are lost, and in structured formats the order of keys. Files that cannot be parsed are left out.
package toolsettings

import (
	"cmp"
	_ "embed"
	"encoding/pem"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"muster/internal/durable"
	"muster/internal/proc"
)

// File is a file of settings.
type File struct {
	// Path is where a tool looks for it.
	Path string
	// Text is what of it may be shown. Do not show Path itself: npm login may add a token later.
	Text []byte
	// IsPart says that Text lacks settings of the file.
	IsPart bool
}

//go:embed kept.txt
var table string

// entry is a file of the table.
type entry struct {
	name, format, variable string
	kept                   []setting
}

var entries = sync.OnceValue(func() (all []entry) {
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || line[0] == '#':
		case line[0] == '\t':
			all[len(all)-1].keep(words[0])
		case words[1] == "like":
			i := slices.IndexFunc(all, func(e entry) bool { return e.name == words[2] })
			all = append(all, entry{words[0], all[i].format, "", all[i].kept})
		default:
			all = append(all, entry{words[0], words[1], strings.Join(words[2:], ""), nil})
		}
	}
	return all
})

func (e *entry) keep(path string) {
	var s setting
	for part := range strings.SplitSeq(path, "/") {
		s = append(s, strings.Split(part, "|"))
	}
	e.kept = append(e.kept, s)
}

// maxSize is the largest file that is looked at, in bytes.
const maxSize = 1 << 20

// Find returns the settings that are there. home is the user's home directory, and env the environment of the tools.
func Find(home string, env []string) (found []File) {
	for _, e := range entries() {
		path := pathOf(home, env, e.name)
		if named := proc.Variable(env, e.variable); e.variable != "" && filepath.IsAbs(named) {
			path = filepath.Clean(named)
		}
		real, err := filepath.EvalSymlinks(path) // a link in many homes
		if err != nil {
			continue
		}
		data, err := durable.ReadRegular(real, maxSize)
		if err != nil { // for the tool it is none either
			continue
		}
		if text, isPart, ok := clean(e.format, e.kept, data); ok {
			found = append(found, File{Path: path, Text: text, IsPart: isPart})
		}
	}
	return found
}

// GoVariable returns a variable of go's, without passwords: from the environment, or from what "go env -w" has written.
func GoVariable(home string, env []string, name string) (value string) {
	if value = proc.Variable(env, name); value != "" {
		return value
	}
	path := cmp.Or(proc.Variable(env, "GOENV"), pathOf(home, env, ".config/go/env"))
	if !filepath.IsAbs(path) { // "off"
		return ""
	}
	data, _ := durable.ReadRegular(path, maxSize) // there may be none
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, name+"="); ok {
			if value, ok = withoutUser(strings.TrimSpace(v)); !ok {
				value = ""
			}
		}
	}
	return value
}

// homeVariables name directories that have another place in some homes.
var homeVariables = [][2]string{{".config/", "XDG_CONFIG_HOME"}, {".cargo/", "CARGO_HOME"},
	{".gradle/", "GRADLE_USER_HOME"}}

// pathOf returns the path of a name in a home directory, where the variables of an environment say that it is.
func pathOf(home string, env []string, name string) string {
	for _, v := range homeVariables {
		rest, ok := strings.CutPrefix(name, v[0])
		if dir := proc.Variable(env, v[1]); ok && filepath.IsAbs(dir) {
			return filepath.Join(dir, filepath.FromSlash(rest))
		}
	}
	return filepath.Join(home, filepath.FromSlash(name))
}

// direnvConfig is the file in which direnv finds the directories whose .envrc may be run.
const direnvConfig = ".config/direnv/direnv.toml"

// Direnv returns settings of direnv in which all directories may be used: a confined program can run what stands in an
// .envrc anyway, and the user has allowed that of the checkout by its path alone.
func Direnv(home string, env []string) File {
	return File{Path: pathOf(home, env, direnvConfig), Text: []byte("[whitelist]\nprefix = [\"/\"]\n")}
}

// certificateVariables name files with the certificates of authorities.
var certificateVariables = []string{"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT",
	"REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"}

// Certificates returns the files of certificates that an environment names, without keys.
func Certificates(env []string) (found []File) {
	for _, name := range certificateVariables {
		path := proc.Variable(env, name)
		data, err := durable.ReadRegular(path, maxSize)
		if err != nil || !filepath.IsAbs(path) {
			continue
		}
		var text []byte
		for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
			if strings.HasSuffix(block.Type, "CERTIFICATE") {
				text = append(text, pem.EncodeToMemory(block)...)
			}
		}
		if len(text) > 0 {
			found = append(found, File{Path: path, Text: text})
		}
	}
	return found
}

// Environ returns the variables that tools need in a checkout at dir beside those of env: with mise its settings are
// trusted there, as those of the user's checkout are, and tools find what the user has downloaded for them.
func Environ(home string, env []string, dir string) (set []string) {
	const trusted = "MISE_TRUSTED_CONFIG_PATHS"
	set = append(set, trusted+"="+strings.TrimPrefix(proc.Variable(env, trusted)+":"+dir, ":"))
	for _, d := range downloads {
		in := filepath.Join(home, filepath.FromSlash(d[1]))
		if proc.Variable(env, d[0]) == "" && !durable.IsMissing(in) {
			set = append(set, d[0]+"="+in)
		}
	}
	return set
}

// downloads are what tools find in the user's caches, of which confined programs have others: the variable that names
// the directory, and where it is in a home.
var downloads = [][2]string{{"CYPRESS_CACHE_FOLDER", ".cache/Cypress"},
	{"PLAYWRIGHT_BROWSERS_PATH", ".cache/ms-playwright"}, {"PUPPETEER_CACHE_DIR", ".cache/puppeteer"}}
