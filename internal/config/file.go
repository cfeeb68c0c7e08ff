package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"muster"
	"muster/internal/durable"
	"muster/internal/editdist"
	"muster/internal/yamldoc"
)

// fileLoader reads one file of settings into a loader.
type fileLoader struct {
	*loader
	name   string // what errors call the file
	source Source

	// trusts reports whether the user trusts a value of the file; nil: the file is the user's own. userFile is then the
	// path of that one.
	trusts   func(name, value string) (bool, error)
	userFile string

	seen []string // check and checks, which a file may not have both
}

// load applies the settings in the file at path. A file that does not exist, or has no path, has none. One that is
// there and cannot be read is an error: the user believes that it holds.
func (l *fileLoader) load(path string) error {
	// The whole file is read before anything is set, so a file with broken YAML sets nothing.
	root, err := l.parse(path)
	if err == nil && l.trusts == nil {
		err = l.servers(root)
	}
	if err != nil {
		return err
	}
	return l.mapping(root, "")
}

// parse returns the root of the file at path, or nil if there is none.
func (l *fileLoader) parse(path string) (ast.Node, error) {
	data, err := l.read(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		e := muster.Errorf(muster.Invalid, "%s cannot be read: %w", l.name, err)
		if l.trusts == nil && errors.Is(err, os.ErrPermission) {
			return nil, e.WithHint("HOME or XDG_CONFIG_HOME leads to it: set it to a directory of your own")
		}
		return nil, e
	}
	return yamldoc.Parse(l.name, data)
}

// MaxSize is how large a file of settings may be, in bytes.
const MaxSize = 32 << 10

// read returns the content of the file at path. The user may keep their own file elsewhere, behind a link; the file in
// a repository came with the repository, and could bring in any file that the user can read.
func (l *fileLoader) read(path string) ([]byte, error) {
	if l.source == FromRepository {
		return durable.ReadBelow(filepath.Dir(path), path, MaxSize)
	}
	return durable.ReadRegular(path, MaxSize)
}

// mapping applies the settings in a YAML mapping. prefix is the name of its level, with a dot at the end. It walks the
// tree instead of decoding into a struct, because each error must name the line and the setting.
func (l *fileLoader) mapping(n ast.Node, prefix string) error {
	switch n := n.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
		return nil
	case *ast.MappingNode, *ast.MappingValueNode:
		for _, v := range yamldoc.Entries(n) {
			if err := l.entry(v, prefix); err != nil {
				return err
			}
		}
		return nil
	}
	return l.errorAt(n, "settings are expected here, each as name: value")
}

// endpointsKey is what the model servers of the user's own file stand below.
const endpointsKey = "endpoints"

// entry applies one name and its value, which may be a further level.
func (l *fileLoader) entry(n *ast.MappingValueNode, prefix string) error {
	key := prefix + n.Key.GetToken().Value
	if s, ok := l.find(func(s Setting) bool {
		return s.removed != "" && (key == s.Name || strings.HasPrefix(key, s.Name+"."))
	}); ok {
		return l.set(s, "", l.source)
	}
	if (key == endpointsKey || key == modelsKey) && l.trusts == nil {
		return nil // they were read before
	}
	if slices.Contains(sections, key) {
		return l.addSection(key, n.Value)
	}
	if isRoles(key) {
		return l.mapping(n.Value, key+".")
	}
	ofRole := l.addRole(key)
	s, ok := l.find(func(s Setting) bool { return s.Name == key })
	if !ok {
		// worktrees, for example, is no setting, and worktrees.dir is one.
		if _, isLevel := l.find(func(s Setting) bool { return strings.HasPrefix(s.Name, key+".") }); isLevel {
			return l.mapping(n.Value, key+".")
		}
		if key == endpointsKey || key == modelsKey {
			return l.errorAt(n.Key, "a repository may not set "+key+": set them in your own config.yaml")
		}
		names := append(slices.Concat(ofRole, sections), endpointsKey, modelsKey, rolesKey)
		for _, s := range Table() {
			names = append(names, s.Name)
		}
		return l.errorAt(n.Key, "there is no setting "+strconv.Quote(key)+editdist.Suggest(key, names))
	}
	if s.inRepository == isRefused && l.source == FromRepository {
		return l.errorAt(n.Key, "a repository may not set "+key+": set it in your own config.yaml")
	}
	if err := l.refuseBoth(n.Key, key); err != nil {
		return err
	}
	text, ok := yamldoc.Scalar(n.Value)
	if _, isChecks := s.to.(*Checks); isChecks && n.Value.Type() != ast.NullType {
		all, err := l.readChecks(n.Value)
		if err != nil {
			return err
		}
		text, ok = all.String(), true
	}
	if items, isList := n.Value.(*ast.SequenceNode); isList && !ok {
		text, ok = join(s, items)
	}
	if !ok {
		return l.errorAt(n.Value, key+" is one value, not a list or a mapping")
	}
	if text == "" && n.Value.Type() == ast.NullType {
		return nil // a name with nothing after it leaves the setting as it is
	}
	if l.trusts != nil {
		return l.propose(n.Value, s, text)
	}
	if err := l.set(s, text, l.source); err != nil {
		return l.errorAt(n.Value, err.Error())
	}
	return nil
}

// join returns the text of a list; ok is false if the setting takes none, or one of its values is a list or a mapping.
func join(s Setting, list *ast.SequenceNode) (text string, ok bool) {
	if s.Kind() != reflect.Slice {
		return "", false
	}
	var items []string
	for _, n := range list.Values {
		item, ok := yamldoc.Scalar(n)
		if !ok {
			return "", false
		}
		items = append(items, item)
	}
	return s.join(items), true
}

// errorAt returns an error that begins with the place of a node.
func (l *fileLoader) errorAt(n ast.Node, what string) error {
	return yamldoc.ErrorAt(l.name, n, "%s", what)
}
