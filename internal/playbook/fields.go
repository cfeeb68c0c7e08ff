package playbook

import (
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"muster"
	"muster/internal/editdist"
	"muster/internal/lazyregexp"
	"muster/internal/yamldoc"
)

// paramName matches the name of a parameter, and placeholder the place of its value in a text. Other braces, such as
// those of templates, stay as they are.
var (
	paramName   = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	placeholder = lazyregexp.New(`\{\{ *([A-Za-z][A-Za-z0-9_-]{0,63}) *\}\}`)
)

// errorAt returns an error that begins with the place of a node.
func (r *reader) errorAt(n ast.Node, format string, args ...any) *muster.Error {
	return yamldoc.ErrorAt(r.File, n, format, args...)
}

// fields returns the values of a mapping by their names. Those with nothing behind the name are left out.
func (r *reader) fields(n ast.Node, what string, known ...string) (map[string]ast.Node, error) {
	entries := yamldoc.Entries(n)
	if len(entries) == 0 {
		return nil, r.errorAt(n, "%s is expected here, with %s", what, strings.Join(known, ", "))
	}
	all, seen := map[string]ast.Node{}, map[string]bool{}
	for _, v := range entries {
		name := v.Key.GetToken().Value
		switch {
		case !slices.Contains(known, name):
			return nil, r.errorAt(v.Key, "%s has no %q%s: it has %s", what, name, editdist.Suggest(name, known),
				strings.Join(known, ", "))
		case seen[name]:
			return nil, r.errorAt(v.Key, "%s stands here twice", name)
		}
		if seen[name] = true; v.Value.Type() != ast.NullType {
			all[name] = v.Value
		}
	}
	return all, nil
}

// scalar returns the text of a node as it was written, and "" for none.
func (r *reader) scalar(n ast.Node) (string, error) {
	if n == nil {
		return "", nil
	}
	text, ok := yamldoc.Scalar(n)
	if !ok {
		return "", r.errorAt(n, "a text is expected here; one that begins with {{ stands between quotes")
	}
	return text, nil
}

func (r *reader) bool(n ast.Node) (bool, error) {
	if text, _ := yamldoc.Scalar(n); text == "true" || text == "false" {
		return text == "true", nil
	}
	return false, r.errorAt(n, "true or false is expected here")
}

// text returns the text of a node with the parameters filled in, and the item, unless it is nil. What is filled in is
// not looked at again.
func (r *reader) text(n ast.Node, item *string) (string, error) {
	text, err := r.scalar(n)
	if err != nil {
		return "", err
	}
	filled := placeholder().ReplaceAllStringFunc(text, func(s string) string {
		name := strings.Trim(s, "{} ")
		p := r.params[name]
		switch {
		case name == "item" && item != nil:
			return *item
		case p != nil:
			p.isUsed = true
			return p.value
		case err != nil:
		case name == "item":
			err = r.errorAt(n, "{{item}} stands only in the texts of a task with for_each")
		default:
			err = r.errorAt(n, "there is no parameter %q%s: declare it under params", name,
				editdist.Suggest(name, slices.Collect(maps.Keys(r.params))))
		}
		return ""
	})
	return filled, err
}

// namesItem reports whether the item stands in a text.
func namesItem(text string) bool {
	return strings.Contains(strings.ReplaceAll(text, " ", ""), "{{item}}")
}
