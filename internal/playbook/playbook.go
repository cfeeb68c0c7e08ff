// Package playbook reads playbooks: files of people that say which tasks a run has, for work that comes again and
// again.
//
// Read returns the tasks of a file with the parameters filled in, each task with for_each as one task for each item,
// in an order in which every task comes after those that it waits for. A playbook is text alone: nothing in it runs.
// Everything is checked before anything is returned, and each error names the file, the line and the column.
//
// The files: playbook.go (Read), fields.go (mappings and texts of the file), graph.go (what waits for what). How the
// tasks come onto the board is not decided here.
package playbook

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/goccy/go-yaml/ast"

	"muster"
	"muster/internal/board"
	"muster/internal/editdist"
	"muster/internal/text"
	"muster/internal/yamldoc"
)

// The limits of a playbook.
const (
	MaxFile  = 256 << 10 // bytes of the file
	maxTasks = 500
	maxText  = 1 << 20 // bytes of the texts of all tasks together
	maxID    = 200     // bytes of the id of a task
)

// Source is a file and what it is read with.
type Source struct {
	File   string // its name in errors
	Data   []byte
	Params map[string]string
	// Tracked returns the files in which globs look, as paths with slashes. It is called only if there is a glob.
	Tracked func() ([]string, error)
}

// Book is a playbook with its parameters filled in.
type Book struct {
	Name, Description string
	// Hash is the SHA-256 of the file.
	Hash  string
	Tasks []muster.PlannedTask
}

// reader reads one file.
type reader struct {
	Source
	params map[string]*param
	tasks  []*task
	size   int // bytes of the texts so far
}

// param is a parameter of a playbook.
type param struct {
	node   ast.Node
	value  string
	isUsed bool
}

// task is one task of the board to be. A task of the file with for_each is one for each item.
type task struct {
	muster.PlannedTask
	node      ast.Node
	id        string     // as the file has it
	blockers  []ast.Node // what blocked_by has
	item      *string
	isVisited bool
}

// Read reads a playbook. Errors are Invalid, and those of Tracked.
func Read(s Source) (b Book, err error) {
	r := &reader{Source: s, params: map[string]*param{}}
	root, err := yamldoc.Parse(s.File, s.Data)
	if err != nil {
		return b, err
	}
	top, err := r.fields(root, "a playbook", "name", "description", "params", "tasks")
	if err != nil {
		return b, err
	}
	if err := r.readParams(top["params"]); err != nil {
		return b, err
	}
	file := filepath.Base(s.File)
	if b.Name, err = r.text(top["name"], nil); err == nil && b.Name == "" {
		b.Name = strings.TrimSuffix(file, filepath.Ext(file))
	}
	if err == nil {
		b.Description, err = r.text(top["description"], nil)
	}
	if err != nil {
		return b, err
	}
	if err := board.Check(board.Draft{Subject: b.Name, Description: b.Description}); err != nil {
		return b, r.errorAt(root, "the playbook's name or description: %v", err)
	}
	list, ok := top["tasks"].(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		return b, r.errorAt(root, "a playbook has a list of tasks, each with an id and a subject")
	}
	for _, n := range list.Values {
		if err := r.readTask(n); err != nil {
			return b, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.params)) {
		if p := r.params[name]; !p.isUsed {
			return b, r.errorAt(p.node, "no text uses the parameter %s: write {{%[1]s}} where it stands, or remove it",
				name)
		}
	}
	b.Tasks, err = r.inOrder()
	sum := sha256.Sum256(s.Data)
	b.Hash = hex.EncodeToString(sum[:])
	return b, err
}

// readParams reads the parameters that the file declares, and gives them their values.
func (r *reader) readParams(n ast.Node) error {
	if n != nil && yamldoc.Entries(n) == nil && n.Type() != ast.NullType {
		return r.errorAt(n, "params are expected here, each as name: default, or as "+
			"name: {default, description, required}")
	}
	var names []string
	for _, v := range yamldoc.Entries(n) {
		names = append(names, v.Key.GetToken().Value)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Params)) {
		if !slices.Contains(names, name) {
			near := editdist.Suggest(name, names)
			return muster.Errorf(muster.Invalid, "%s has no parameter %q%s", r.File, name, near).
				WithHint("its parameters: %s", cmp.Or(strings.Join(names, ", "), "none"))
		}
	}
	for i, v := range yamldoc.Entries(n) {
		name := names[i]
		if !paramName().MatchString(name) || name == "item" || r.params[name] != nil {
			return r.errorAt(v.Key, "%q cannot be the name of a parameter: "+
				"it is a letter with letters, digits, _ and - behind it, is not item, and stands here once", name)
		}
		given, isGiven := r.Params[name]
		value, isNeeded, err := r.readDefault(v.Value)
		if err != nil {
			return err
		}
		if isNeeded && !isGiven {
			return r.errorAt(v.Key, "the parameter %s has no value: give it with --param %[1]s=VALUE", name)
		}
		if isGiven {
			value = given
		}
		r.params[name] = &param{node: v.Key, value: value}
	}
	return nil
}

// readDefault reads what stands behind the name of a parameter. isNeeded says that there is no default, so that the
// user must give the value.
func (r *reader) readDefault(n ast.Node) (value string, isNeeded bool, err error) {
	if yamldoc.Entries(n) == nil {
		value, err = r.scalar(n)
		return value, n.Type() == ast.NullType, err
	}
	f, err := r.fields(n, "a parameter", "default", "description", "required")
	if err != nil {
		return "", false, err
	}
	isNeeded = f["default"] == nil
	if f["required"] != nil {
		isNeeded, err = r.bool(f["required"])
	}
	if err == nil && isNeeded && f["default"] != nil {
		err = r.errorAt(f["default"], "a parameter that is required has no default: leave one of the two out")
	}
	if err == nil && f["description"] != nil {
		_, err = r.scalar(f["description"])
	}
	if err == nil && f["default"] != nil {
		value, err = r.scalar(f["default"])
	}
	return value, isNeeded, err
}

// readTask reads a task of the file, and adds one task for each of its items.
func (r *reader) readTask(n ast.Node) error {
	f, err := r.fields(n, "a task", "id", "subject", "description", "blocked_by", "role", "priority", "require_plan",
		"review", "for_each", "files")
	if err != nil {
		return err
	}
	items := []*string{nil}
	if each := f["for_each"]; each != nil {
		if items, err = r.items(each); err != nil {
			return err
		}
	}
	id, err := r.scalar(f["id"])
	if err != nil {
		return err
	}
	if id = strings.TrimSpace(id); id == "" || f["subject"] == nil {
		return r.errorAt(n, "a task needs an id and a subject")
	}
	if slices.ContainsFunc(r.tasks, func(t *task) bool { return t.id == id }) {
		return r.errorAt(f["id"], "another task has the id %q already", id)
	}
	if len(r.tasks)+len(items) > maxTasks {
		return r.errorAt(n, "a playbook has at most %d tasks, and with this one there are %d", maxTasks,
			len(r.tasks)+len(items))
	}
	for _, item := range items {
		if err := r.addTask(n, f, id, item); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) addTask(n ast.Node, f map[string]ast.Node, id string, item *string) (err error) {
	t := &task{node: n, id: id, item: item}
	if list, ok := f["blocked_by"].(*ast.SequenceNode); ok {
		t.blockers = list.Values
	} else if f["blocked_by"] != nil {
		t.blockers = []ast.Node{f["blocked_by"]}
	}
	for _, x := range []struct {
		to   *string
		name string
	}{{&t.Key, "id"}, {&t.Subject, "subject"}, {&t.Description, "description"}, {&t.Role, "role"}} {
		if *x.to, err = r.text(f[x.name], item); err != nil {
			return err
		}
	}
	if t.Key = strings.TrimSpace(t.Key); item != nil && !namesItem(id) {
		t.Key += "/" + *item
	}
	if len(t.Key) > maxID {
		return r.errorAt(n, "the id %q has more than %d bytes", text.CutBytes(t.Key, 40), maxID)
	}
	if f["priority"] != nil {
		text, _ := r.scalar(f["priority"])
		if t.Priority, err = strconv.Atoi(text); err != nil {
			return r.errorAt(f["priority"], "priority is a whole number, and higher goes first")
		}
	}
	if f["require_plan"] != nil {
		if t.RequirePlan, err = r.bool(f["require_plan"]); err != nil {
			return err
		}
	}
	if f["review"] != nil {
		if t.Review, err = r.bool(f["review"]); err != nil {
			return err
		}
	}
	if t.Files, err = r.files(f["files"], item); err != nil {
		return err
	}
	t.Role = muster.RoleName(t.Role)
	if err := board.Check(board.Draft{Subject: t.Subject, Description: t.Description, Role: t.Role,
		Files: t.Files}); err != nil {
		return r.errorAt(n, "the task %q: %v", t.Key, err)
	}
	if r.size += len(t.Key) + len(t.Subject) + len(t.Description); r.size > maxText {
		return r.errorAt(n, "the texts of all tasks together have more than %d bytes", maxText)
	}
	r.tasks = append(r.tasks, t)
	return nil
}

// files returns the files of a task: a list, or one of them.
func (r *reader) files(n ast.Node, item *string) (files []string, err error) {
	if n == nil {
		return nil, nil
	}
	nodes := []ast.Node{n}
	if list, ok := n.(*ast.SequenceNode); ok {
		nodes = list.Values
	}
	for _, x := range nodes {
		file, err := r.text(x, item)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// items returns the items of for_each: those of a list, those of a text with commas, or the files that a glob matches.
func (r *reader) items(n ast.Node) (items []*string, err error) {
	var found []string
	switch {
	case yamldoc.Entries(n) != nil:
		found, err = r.glob(n)
	case n.Type() == ast.SequenceType:
		for _, v := range n.(*ast.SequenceNode).Values {
			text, e := r.text(v, nil)
			if e != nil {
				return nil, e
			}
			found = append(found, text)
		}
	default:
		var text string
		text, err = r.text(n, nil)
		found = strings.Split(text, ",")
	}
	for _, item := range found {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, &item)
		}
	}
	if err == nil && len(items) == 0 {
		err = r.errorAt(n, "for_each has no items: it is a list, a text with commas between the items, or "+
			"{glob: PATTERN} that matches tracked files")
	}
	return items, err
}

func (r *reader) glob(n ast.Node) (found []string, err error) {
	f, err := r.fields(n, "for_each", "glob")
	if err != nil {
		return nil, err
	}
	pattern, err := r.text(f["glob"], nil)
	if err != nil {
		return nil, err
	}
	if pattern == "" || !doublestar.ValidatePattern(pattern) {
		return nil, r.errorAt(n, "%q is no pattern of paths: write one such as packages/*/go.mod or **/*.proto",
			pattern)
	}
	files, err := r.Tracked()
	for _, file := range files {
		if doublestar.MatchUnvalidated(pattern, file) {
			found = append(found, file)
		}
	}
	return found, err
}
