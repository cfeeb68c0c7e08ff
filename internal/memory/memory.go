// Package memory keeps what members of teams remember from one run to the next, as files that people can read and edit.
//
// A Memory is one file NAME.md in a directory: a head with a description and where it comes from, and the text. The
// files are the truth. MEMORY.md beside them is an index for people, which is made anew from the files at each change.
// There is a Dir for each repository, in the user's state directory, and one of the user's own, beside the settings. No
// repository can bring a file into either. List returns the index that members read first; they read the files
// themselves.
//
// The package keeps these invariants:
//
//   - Nothing that was saved is lost when two members, or two processes, save at once: changes happen one after the
//     other under a lock, each is durable before it is reported, and a text that another one replaces is kept in .old.
//   - A memory is the user's word only where the user has saved it with a command: then it has a signature. Everything
//     else is a note that is to be checked.
//   - What a member saves after it has read the output of a tool is marked as such. The mark is in the head, which
//     members do not write.
//
// It prints nothing, and it does not decide when to save.
package memory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/frontmatter"
	"muster/internal/text"
)

// The limits of a memory.
const (
	MaxContent     = 16 << 10 // bytes
	maxDescription = 200      // bytes
	maxFile        = 64 << 10 // with its head
	maxField       = 80       // bytes of what is named in a head
)

// Types returns what a memory can be about: the user, how they want the work done, the project, or where something is
// to be found.
func Types() []string { return []string{"user", "feedback", "project", "reference"} }

// byUser is who has saved what the user has.
const byUser = "user"

// Memory is one memory.
type Memory struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Type        string `json:"type"`
	// By is the member that saved it; IsUsers says that the user did. Task and Run are what the member worked on.
	By      string        `json:"by,omitempty"`
	IsUsers bool          `json:"is_users"`
	Task    muster.TaskID `json:"task,omitempty"`
	Run     string        `json:"run,omitempty"`
	At      time.Time     `json:"at"` // when it was saved; of a file that does not say so, when it was changed
	// SawOutput says that the member had read the output of a tool by then: the text may come from there.
	SawOutput bool   `json:"saw_output,omitempty"`
	Content   string `json:"-"`
	Path      string `json:"path"`
	// Problem says why it is not used; "": it is.
	Problem string `json:"problem,omitempty"`
}

// Check refuses a memory that cannot be saved. The error is Invalid, in words for the one who saves.
func (m Memory) Check() error {
	err := checkName(m.Name)
	switch {
	case err != nil:
		return err
	case !slices.Contains(Types(), m.Type):
		return muster.Errorf(muster.Invalid, "%q is no type of a memory: it is one of %s", m.Type,
			strings.Join(Types(), ", "))
	case m.Description == "" || len(m.Description) > maxDescription:
		return muster.Errorf(muster.Invalid, "the description has %d bytes: it needs one sentence of at most %d",
			len(m.Description), maxDescription)
	case strings.TrimSpace(m.Content) == "" || len(m.Content) > MaxContent:
		return muster.Errorf(muster.Invalid, "the content has %d bytes: it needs a text of at most %d KB",
			len(m.Content), MaxContent>>10)
	}
	return nil
}

// checkName refuses what is no name of a memory. A name is that of a file on every system.
func checkName(name string) error {
	if name == "memory" {
		return muster.Errorf(muster.Invalid, "%q cannot be the name of a memory: the index has it", name)
	}
	return muster.CheckName(muster.Name(name))
}

// render returns the file of a memory, with the signature of what the user has saved.
func (m Memory) render(signature string) string {
	var b strings.Builder
	field := func(name string, value any) {
		text, _ := json.Marshal(value) // JSON is YAML, whatever a text has in it
		fmt.Fprintf(&b, "%s: %s\n", name, text)
	}
	b.WriteString("---\n")
	field("name", m.Name)
	field("description", m.Description)
	field("type", m.Type)
	field("by", cmp.Or(m.By, byUser))
	if m.Task != 0 {
		field("task", m.Task)
	}
	if m.Run != "" {
		field("run", m.Run)
	}
	if !m.At.IsZero() {
		field("date", m.At.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	}
	if m.SawOutput {
		field("saw_output", true)
	}
	if signature != "" {
		field("signature", signature)
	}
	return b.String() + "---\n" + strings.TrimSpace(m.Content) + "\n"
}

// parse returns the memory of a file with a name, and its signature. Files of people may lack any field.
func parse(name, content string, changed time.Time) (m Memory, signature string) {
	head, body := frontmatter.Split(content)
	m = Memory{Name: name, Type: "project", By: short(head.Text("by")), Run: short(head.Text("run")), At: changed,
		Content: strings.TrimSpace(body), SawOutput: head.Text("saw_output") == "true"}
	if t := head.Text("type"); slices.Contains(Types(), t) {
		m.Type = t
	}
	_, _ = fmt.Sscan(head.Text("task"), &m.Task) // without one it is 0
	if at, err := time.Parse(time.RFC3339, head.Text("date")); err == nil {
		m.At = at
	}
	first, _, _ := strings.Cut(strings.TrimLeft(m.Content, "# \n"), "\n")
	m.Description = text.CutBytes(text.OneLine(cmp.Or(head.Text("description"), first)), maxDescription)
	return m, head.Text("signature")
}

// signed returns what the signature of a memory of the user is of: all that members are told of it as the user's word.
func (m Memory) signed() string {
	return strings.Join([]string{"muster memory", m.Name, m.Type, m.Description, m.Content}, "\x00")
}

func (m Memory) line() string {
	about := []string{m.Type}
	if m.IsUsers {
		about = append(about, "the user's")
	} else {
		if m.By != "" && m.By != byUser {
			about = append(about, m.By)
		}
		about = append(about, m.At.UTC().Format(time.DateOnly))
		if m.SawOutput {
			about = append(about, "after output of tools")
		}
	}
	return fmt.Sprintf("%s (%s): %s", m.Name, strings.Join(about, ", "), m.Description)
}

func short(s string) string { return text.CutBytes(text.OneLine(s), maxField) }

// New returns the memory that a person begins with.
func New(name string) (Memory, error) {
	return Memory{Name: name, Type: "project"}, checkName(name)
}

// Parse returns the memory that a person has written as a file with a name.
func Parse(name, content string, at time.Time) Memory {
	m, _ := parse(name, text.Clean(content), at)
	return m
}

// Text returns the file of a memory, without a signature.
func (m Memory) Text() string { return m.render("") }

// Clean returns a memory of a member as it is saved: the marks of the runtime in it are escaped, and it has no
// characters that steer a terminal.
func (m Memory) Clean() Memory {
	clean := func(s string) string { return text.EscapeTags(text.Clean(s)) }
	m.Name, m.Content = strings.TrimSpace(m.Name), clean(m.Content)
	m.Description = text.OneLine(clean(m.Description))
	m.Run, m.By = short(clean(m.Run)), short(m.By)
	return m
}
