// Package agentfiles finds the Markdown files that people keep for agents: skills, roles and commands.
//
// A Kind says which files belong together. Find looks for them in the repository and at home, where people keep them
// for other agents. The types of the kinds embed what it returns. What the other fields of a head mean is decided by
// their packages.
//
// These are files of others. No link leads out of the repository, or out of the user's home. How much is read is
// bounded, and nothing but a regular file is opened for long. What is returned can be shown on a terminal. A file that
// cannot be used is returned too, with the reason.
package agentfiles

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"muster"
	"muster/internal/frontmatter"
	"muster/internal/text"
)

const (
	maxName = 64 // bytes
	// MaxDescription is how many bytes a description has at most.
	MaxDescription = 1024
)

// Kind is a kind of files.
type Kind struct {
	// Word is what people call one, such as skill. Of such files only one with a name can be used, the first. Without a
	// Word, several may have one name.
	Word string
	Dir  string // the name of the directories that have them, such as skills
	// Alone is the name of a file that has its directory for itself: what else lies there or below is not looked at.
	// "" is for any Markdown file but those that tell people, or all agents, about a directory.
	Alone string
	All   bool // these count too
	// InRoot says that Dir in the root of the repository is one of the directories.
	InRoot bool
	// Check returns why a file cannot be used, or "". If nil, all can.
	Check func(f File) string
}

// isFile reports whether a file with a name is one of the kind.
func (k Kind) isFile(name string) bool {
	if k.Alone != "" {
		return strings.EqualFold(name, k.Alone)
	}
	name = strings.ToLower(name)
	return path.Ext(name) == ".md" && (k.All || !slices.Contains([]string{"readme.md", "agents.md", "claude.md"}, name))
}

// File is one file.
type File struct {
	// Name and Description are those of its head. Without them, the file's name and the first sentence count.
	Name, Description string
	Head              frontmatter.Fields
	Body              string // what is below the head, without blanks around it
	// Path is the path of the file, absolute, and Below that below the directory of its kind, with slashes and without
	// the extension.
	Path, Below string
	// Place is the path of the file, or of the directory that it has for itself, as people read it: relative to the
	// repository, or below ~.
	Place string
	// IsUser says that it is the user's own, or comes with muster, and is not the repository's.
	IsUser bool
	// IsSecond says that it has a Problem because another file has its name.
	IsSecond bool
	// Problem says why it cannot be used; "": it can. A file with a Problem is shown to people and to no model.
	Problem string
}

// New returns a file that lies nowhere and comes with muster. place is what people read of where it is.
func New(name, place, content string) File {
	f := File{Name: name, Place: place, IsUser: true}
	f.parse(content)
	return f
}

// parse reads what all kinds have.
func (f *File) parse(content string) {
	head, body := frontmatter.Split(content)
	f.Head, f.Body = head, strings.TrimSpace(body)
	f.Name = text.CutBytes(text.OneLine(cmp.Or(head.Text("name"), f.Name)), maxName)
	f.Description = text.CutBytes(cmp.Or(head.Text("description"), firstSentence(f.Body)), MaxDescription)
	if f.Body == "" {
		f.Problem = "it has no text below its front matter"
	}
}

// firstSentence returns the first sentence of a Markdown text that is no heading.
func firstSentence(body string) string {
	for paragraph := range strings.SplitSeq(body, "\n\n") {
		if paragraph = strings.TrimSpace(paragraph); strings.HasPrefix(paragraph, "#") {
			_, paragraph, _ = strings.Cut(paragraph, "\n") // text may stand right below the heading
		}
		if sentence, _, isFirst := strings.Cut(text.OneLine(paragraph), ". "); isFirst {
			return sentence + "."
		} else if sentence != "" {
			return sentence
		}
	}
	return ""
}

// isUsable and hasKey let Usable and Named see what embeds a File.
func (f File) isUsable() bool { return f.Problem == "" }
func (f File) hasKey(key string) bool {
	return f.isUsable() && muster.RoleKey(f.Name) == key && key != ""
}

// Usable returns the files without a Problem.
func Usable[F interface{ isUsable() bool }](all []F) []F {
	return slices.DeleteFunc(slices.Clone(all), func(f F) bool { return !f.isUsable() })
}

// Named returns the usable file with a name, however it is spelt: see muster.RoleKey.
func Named[F interface{ hasKey(key string) bool }](all []F, name string) (found F, ok bool) {
	key := muster.RoleKey(name)
	i := slices.IndexFunc(all, func(f F) bool { return f.hasKey(key) })
	if i < 0 {
		return found, false
	}
	return all[i], true
}
