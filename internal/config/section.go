package config

import (
	"errors"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"muster"
	"muster/internal/yamldoc"
)

// sections are the settings whose values are structures. Load finds them, and the package that a section concerns reads
// what is in it. They start processes, so those of a repository's file count only when the user trusts them: that
// package makes a trust.Item of each.
var sections = []string{"hooks", "mcp_servers", "permissions"}

// Section is a setting whose value is a structure, as it stands in one file.
type Section struct {
	Name string
	// File is what people call the file: File for that of the repository, and its path for the user's own.
	File string
	// Source says which of the two files it is.
	Source Source
	// Node is the value as it was read, with the places of all its parts. It has no aliases.
	Node ast.Node
}

// SectionEntry is an entry of a mapping in a section.
type SectionEntry struct {
	Name string
	// Key is the node of the name, for errors.
	Key, Value ast.Node
}

// SectionsNamed returns the sections with a name, that of the user's file first.
func (s *Settings) SectionsNamed(name string) (found []Section) {
	for _, section := range s.Sections {
		if section.Name == name {
			found = append(found, section)
		}
	}
	return found
}

// IsTrusted reports whether the section is of the user's own file, and counts as it is.
func (s Section) IsTrusted() bool { return s.Source != FromRepository }

// Entries returns the entries of the section, which must be a mapping.
func (s Section) Entries() (all []SectionEntry, err error) {
	for _, v := range yamldoc.Entries(s.Node) {
		all = append(all, SectionEntry{v.Key.GetToken().Value, v.Key, v.Value})
	}
	if len(all) == 0 {
		return nil, s.Errorf(s.Node, "%s has named entries, each as name: value", s.Name)
	}
	return all, nil
}

// Decode reads a node of the section into a value. A field that a struct does not have is an error.
func (s Section) Decode(n ast.Node, to any) error { return decode(s.File, n, to) }

// Errorf returns an error that begins with the place of a node: the file, the line and the column.
func (s Section) Errorf(n ast.Node, format string, args ...any) *muster.Error {
	return yamldoc.ErrorAt(s.File, n, format, args...)
}

func (l *fileLoader) addSection(name string, n ast.Node) error {
	if n.Type() == ast.NullType {
		return nil
	}
	s := Section{Name: name, File: l.name, Source: l.source, Node: n}
	if err := s.refuseAliases(); err != nil {
		return err
	}
	l.Sections = append(l.Sections, s)
	return nil
}

// refuseAliases refuses anchors and aliases: a few lines of aliases of aliases stand for gigabytes.
func (s Section) refuseAliases() error {
	for _, kind := range []ast.NodeType{ast.AliasType, ast.AnchorType, ast.MergeKeyType} {
		if found := ast.Filter(kind, s.Node); len(found) > 0 {
			return s.Errorf(found[0], "%s may not have anchors and aliases", s.Name)
		}
	}
	return nil
}

// decode reads a node of a file into a value. A field that a struct does not have is an error.
func decode(file string, n ast.Node, to any) error {
	err := yaml.NodeToValue(n, to, yaml.Strict())
	if err == nil {
		return nil
	}
	what := ""
	if _, ok := errors.AsType[*yaml.TypeError](err); ok {
		what = "another kind of value is expected here"
	}
	return yamldoc.Error(file, err, what)
}
