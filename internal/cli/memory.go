package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/memory"
	"muster/internal/proc"
	"muster/internal/text"
	"muster/internal/view"
	"muster/internal/workspace"
)

// memoryCommands are the commands of what is remembered across runs. What a member has saved is a note; what the user
// saves here is the user's word.
type memoryCommands struct {
	*App
	isUsers bool // --user: that of all repositories
}

// remembered is a memory as --json prints it.
type remembered struct {
	memory.Memory
	Place string `json:"place"`
	Text  string `json:"text,omitempty"`
}

func newMemoryCommand(a *App) *cobra.Command {
	m := &memoryCommands{App: a}
	c := newGroup("memory", "what is remembered across runs: list it, show it, edit it, forget it", m.show(), m.edit(),
		m.forget())
	c.Long = "Members save what later runs should know of this repository, and read the list at the start. You have\n" +
		"memories of your own, for all repositories (--user). What you save with edit is your word; all else is\n" +
		"a note that members are told to check."
	c.PersistentFlags().BoolVar(&m.isUsers, "user", false, "your own, for all repositories")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o, err := a.open(c.Context())
		if err != nil {
			return err
		}
		defer o.close()
		return m.list(o)
	}
	return c
}

func (m *memoryCommands) dir(o opened, isUsers bool) (dir memory.Dir, place string, err error) {
	if isUsers {
		return workspace.UserMemory(o.workspace, userDir(m.App)), "all repositories", nil
	}
	dir, err = workspace.MemoryOf(o.workspace)
	return dir, "this repository", err
}

func (m *memoryCommands) list(o opened) error {
	all, dirs, both := []remembered{}, "", []bool{true, false}
	if m.isUsers {
		both = both[:1]
	}
	for _, isUsers := range both {
		dir, place, err := m.dir(o, isUsers)
		if err != nil {
			return err
		}
		found, err := dir.List()
		if err != nil {
			return err
		}
		for _, x := range found {
			all = append(all, remembered{x, place, ""})
		}
		if len(found) > 0 {
			dirs += "\nof " + place + ": " + dir.Path
		}
	}
	return m.print(all, func(s view.Screen) string {
		if len(all) == 0 {
			return "Nothing is remembered here. Members save what later runs should know.\n" +
				"To save something yourself: muster memory edit NAME\n"
		}
		return memoryTable(all, m.Now()).Draw(s) + dirs + "\n"
	})
}

func memoryTable(all []remembered, now time.Time) view.Table {
	t := view.Table{Wide: 2, Titles: []string{"MEMORY", "TYPE", "WHAT IT SAYS", "FROM", "OF"}}
	for _, x := range all {
		from := "you"
		if !x.IsUsers {
			from = cmp.Or(x.By, "a file") + ", " + view.Clock(x.Memory.At, now)
			if x.SawOutput {
				from += ", after output of tools"
			}
		}
		about := text.OneLine(x.Description)
		if x.Problem != "" {
			about, from = "not used: "+x.Problem, ""
		}
		t.Row(text.OneLine(x.Name), x.Type, about, text.OneLine(from), x.Place)
	}
	return t
}

// find returns the memory with a name, where it lies, and how people call that. Without --user it may be the user's
// own, if the repository has none of that name.
func (m *memoryCommands) find(o opened, name string) (memory.Memory, memory.Dir, string, error) {
	dir, place, err := m.dir(o, m.isUsers)
	if err != nil {
		return memory.Memory{}, dir, place, err
	}
	x, err := dir.Get(name)
	if !m.isUsers && errors.Is(err, muster.ErrNotFound) {
		users, usersPlace, _ := m.dir(o, true)
		if y, err := users.Get(name); err == nil {
			return y, users, usersPlace, nil
		}
	}
	return x, dir, place, err
}

func (m *memoryCommands) show() *cobra.Command {
	return &cobra.Command{Use: "show NAME", Short: "the text of one, and where it comes from", Args: namedArgs("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := m.open(c.Context())
			if err != nil {
				return err
			}
			defer o.close()
			x, _, place, err := m.find(o, args[0])
			if err != nil {
				return err
			}
			return m.print(remembered{x, place, x.Content}, func(view.Screen) string {
				return text.Clean(x.Text()) + "\n"
			})
		}}
}

func (m *memoryCommands) forget() *cobra.Command {
	return &cobra.Command{Use: "forget NAME", Short: "remove one, with what it was before", Args: namedArgs("NAME"),
		RunE: m.changing(func(c *cobra.Command, o opened, args []string) error {
			if err := o.workspace.PrepareChange(c.Context()); err != nil {
				return err
			}
			// One that cannot be read can be forgotten too.
			x, dir, place, err := m.find(o, args[0])
			if errors.Is(err, muster.ErrNotFound) {
				return err
			}
			err = dir.Forget(c.Context(), args[0])
			return m.printLine(remembered{x, place, ""}, err, "%s of %s is forgotten",
				text.OneLine(args[0]), place)
		})}
}

func (m *memoryCommands) edit() *cobra.Command {
	return &cobra.Command{Use: "edit NAME", Short: "write one, or make one yours",
		Args: namedArgs("NAME"),
		Long: "Opens $VISUAL or $EDITOR; without a terminal the text comes from standard input. What you save is\n" +
			"your word, also where a member has written it. With --user a memory of this repository becomes one\n" +
			"for all.",
		RunE: m.changing(func(c *cobra.Command, o opened, args []string) error {
			if err := o.workspace.PrepareChange(c.Context()); err != nil {
				return err
			}
			was, _, _, err := m.find(o, args[0])
			if m.isUsers && errors.Is(err, muster.ErrNotFound) {
				of := &memoryCommands{App: m.App}
				was, _, _, err = of.find(o, args[0])
			}
			if errors.Is(err, muster.ErrNotFound) {
				was, err = memory.New(args[0])
			}
			if err != nil {
				return err
			}
			return m.save(c.Context(), o, was)
		})}
}

func (m *memoryCommands) save(ctx context.Context, o opened, was memory.Memory) error {
	if !m.isUsers { // a repository in which muster has made no state yet has no place for them
		if err := o.workspace.Mark(ctx); err != nil {
			return err
		}
	}
	dir, place, err := m.dir(o, m.isUsers)
	if err != nil {
		return err
	}
	edited, draft, err := m.edited(ctx, was)
	if err != nil || edited == "" {
		return err
	}
	x := memory.Parse(was.Name, edited, m.Now())
	x.IsUsers = true
	replaced, err := dir.Save(ctx, x)
	if err != nil {
		if draft != "" {
			explain(m.Stderr, "your text is kept in "+draft, "")
		}
		return err
	}
	if draft != "" {
		_ = os.RemoveAll(filepath.Dir(draft)) // it is saved
	}
	line := text.OneLine(x.Name) + " of " + place + " is saved"
	if replaced != "" {
		line += "; what it was is kept in " + replaced
	}
	x.At = m.Now()
	return m.printLine(remembered{x, place, x.Content}, nil, "%s", line)
}

// edited returns what the user makes of a memory: in an editor, or from standard input where there is no terminal. It
// is "" when the user changes nothing. draft is the editor's file.
func (m *memoryCommands) edited(ctx context.Context, was memory.Memory) (text, draft string, err error) {
	in := m.terminalIn()
	if in == nil {
		data, err := io.ReadAll(io.LimitReader(m.Stdin, maxStdin))
		if err == nil && len(data) == 0 {
			err = muster.Errorf(muster.Invalid, "standard input is empty, and nothing is saved").
				WithHint("muster memory edit NAME < FILE")
		}
		return string(data), "", err
	}
	dir, err := os.MkdirTemp("", "muster-memory-")
	if err != nil {
		return "", "", err
	}
	draft, before := filepath.Join(dir, was.Name+".md"), was.Text()
	if err := os.WriteFile(draft, []byte(before), 0o600); err != nil {
		return "", "", err
	}
	c := m.editor(ctx, draft)
	c.Stdin, c.Stdout, c.Stderr = in, in, in
	if err := c.Run(); err != nil {
		return "", "", muster.Errorf(muster.Unavailable, "the editor %s failed, and nothing is saved: %w",
			m.editorName(), err).
			WithHint("your text is in %s", draft)
	}
	data, err := os.ReadFile(draft)
	if err == nil && string(data) == before {
		_ = os.RemoveAll(dir)
		return "", "", m.printLine(struct{}{}, nil, "nothing is changed")
	}
	return string(data), draft, err
}

// editorName returns the user's editor: $VISUAL, $EDITOR or vi. It may have arguments.
func (a *App) editorName() string { return cmp.Or(a.env("VISUAL"), a.env("EDITOR"), "vi") }

// editor returns the user's editor for a file. It runs in the session of this process, with the user's rights.
func (a *App) editor(ctx context.Context, file string) *exec.Cmd {
	name := a.editorName()
	argv := append(proc.Shell(name+` "$1"`), name, file)
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.Env = a.workDir(), a.Env
	return c
}
