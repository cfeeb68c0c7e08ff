package script

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"muster"
	"muster/internal/durable"
	"muster/internal/yamldoc"
	"muster/llm"
)

// A script is read in two steps. The library decodes the file into the types of script.go, which check
// themselves as they are decoded. Then checkValues looks at what only the whole script can tell.

// keys is the hint that lists all keys of the format.
const keys = "a script has speakers and scenes; a scene has cue, who, turns; " +
	"a turn has cue, until, say, think, do, wait, stop, error; an error has kind, after, times"

// maxSize is how large a script may be, in bytes.
const maxSize = 4 << 20

// Load reads a script from a file. Errors are NotFound or Invalid, with the line.
func Load(path string) (*Script, error) {
	data, err := durable.ReadRegular(path, maxSize)
	if errors.Is(err, os.ErrNotExist) {
		return nil, muster.Errorf(muster.NotFound, "there is no script %s", path)
	}
	if err != nil {
		return nil, muster.Errorf(muster.Invalid, "the script %s cannot be read: %w", path, err)
	}
	return parse(filepath.Base(path), data)
}

// Parse reads a script from memory. Errors are Invalid, with the line.
func Parse(data []byte) (*Script, error) { return parse("script", data) }

// parse reads a script; file is its name in errors. The types of the script decode and check themselves:
// the methods UnmarshalYAML below report mistakes in the order in which the library decodes, and only the
// first one counts.
func parse(file string, data []byte) (*Script, error) {
	_, err := yamldoc.Parse(file, data)
	if invalid, ok := errors.AsType[*muster.Error](err); ok {
		return nil, invalid.WithHint(keys)
	}
	var text struct {
		Speakers map[string]list[turn]
		Scenes   list[scene]
	}
	if err := yaml.UnmarshalWithOptions(muster.TrimBOM(data), &text, yaml.Strict()); err != nil {
		if mistake, ok := errors.AsType[*muster.Error](err); ok {
			return nil, muster.Errorf(muster.Invalid, "%s:%w", file, mistake)
		}
		return nil, yamldoc.Error(file, err, expectation(err)).WithHint(keys)
	}
	if len(text.Speakers) == 0 && len(text.Scenes) == 0 {
		return nil, muster.Errorf(muster.Invalid, "%s: it is empty", file).WithHint(keys)
	}
	s := &Script{file: file, speakers: text.Speakers, scenes: text.Scenes}
	return s, s.checkValues()
}

// checkValues checks that every value in the turns can become known. A misspelt one is found when the
// script is read, and not in the middle of a run. It comes after all cues were read, because a value may be
// captured anywhere.
func (s *Script) checkValues() error {
	var turns list[turn]
	var cues []cue
	for _, of := range s.speakers {
		turns = append(turns, of...)
	}
	for _, sc := range s.scenes {
		turns, cues = append(turns, sc.Turns...), append(cues, sc.Cue)
	}
	for _, t := range turns {
		cues = append(cues, t.Cue, t.Until)
	}
	isCaptured := func(name string) bool {
		return slices.ContainsFunc(cues, func(c cue) bool { return c.Regexp != nil && c.SubexpIndex(name) >= 0 })
	}
	// The speakers are a map, so without an order another mistake would be reported each time.
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.line, b.line) })
	for _, t := range turns {
		for _, name := range t.values() {
			// A value with another one in its name is judged when it is played.
			kind, _, _ := strings.Cut(name, ":")
			if kind != "task" && kind != "request" && name != "me" && !isCaptured(name) {
				return muster.Errorf(muster.Invalid, "%s:%d:%d: nothing can fill in ${%s}: "+
					"no cue has a group (?P<%[4]s>...), and the values that are always there are %s "+
					"(for the text itself write $${%[4]s})", s.file, t.line, t.column, name, builtIns)
			}
		}
	}
	return nil
}

// decoder decodes a node of the file into a value, or into an ast.Node the node itself. The library passes
// one to each UnmarshalYAML.
type decoder = func(any) error

// reject returns the error for a mistake at a node. It begins with the node's place; parse puts the file
// before it.
func reject(node ast.Node, format string, args ...any) error {
	line, column := yamldoc.Place(node)
	return muster.Errorf(muster.Invalid, "%d:%d: "+format, append([]any{line, column}, args...)...)
}

// placed is a value with the node that it was read from, for mistakes that show only later.
type placed[T any] struct {
	value T
	node  ast.Node
}

// UnmarshalYAML reads the value.
func (p *placed[T]) UnmarshalYAML(decode decoder) (err error) {
	p.node, err = decodePlaced(decode, &p.value)
	return err
}

// decodePlaced decodes a value and returns the node that it was read from.
func decodePlaced(decode decoder, value any) (node ast.Node, err error) {
	err = cmp.Or(decode(&node), decode(value))
	return node, err
}

// list is a list without empty entries, which the library would not decode and so not check.
type list[T any] []T

// UnmarshalYAML reads the list.
func (l *list[T]) UnmarshalYAML(decode decoder) error {
	var nodes placed[[]ast.Node]
	if err := cmp.Or(decode(&nodes), decode((*[]T)(l))); err != nil {
		return err
	}
	if slices.Contains(nodes.value, nil) {
		return reject(nodes.node, "an entry of this list is empty")
	}
	return nil
}

// UnmarshalYAML reads and checks a scene.
func (s *scene) UnmarshalYAML(decode decoder) error {
	type fields scene // without this method, which would call itself
	node, err := decodePlaced(decode, (*fields)(s))
	switch {
	case err != nil:
		return err
	case s.Cue.Regexp == nil:
		return reject(node, "a scene needs a cue, else it is never entered")
	case len(s.Turns) == 0:
		return reject(node, "a scene needs turns")
	}
	return nil
}

// UnmarshalYAML reads and checks a turn.
func (t *turn) UnmarshalYAML(decode decoder) error {
	type fields turn // without this method
	node, err := decodePlaced(decode, (*fields)(t))
	if err != nil {
		return err
	}
	t.line, t.column = yamldoc.Place(node)
	switch stop := &t.Stop.value; {
	case t.Say == "" && t.Think == "" && len(t.Do) == 0:
		return reject(node, "a turn needs say, think or do: also one that fails first, for the time after")
	case *stop != "" && *stop != llm.StopEnd && *stop != llm.StopMax && *stop != llm.StopRefused:
		return reject(t.Stop.node, "a turn's stop is end, max_tokens or refused")
	case *stop != "" && len(t.Do) > 0:
		return reject(t.Stop.node, "a turn with calls stops for their results: leave stop out, or do")
	case len(t.Do) > 0:
		*stop = llm.StopTools
	case *stop == "":
		*stop = llm.StopEnd
	}
	return nil
}

// UnmarshalYAML reads a call, which is written as a mapping with the tool's name as its only key.
func (c *call) UnmarshalYAML(decode decoder) error {
	var entry placed[map[string]placed[any]]
	if err := decode(&entry); err != nil {
		return err
	}
	if len(entry.value) != 1 {
		return reject(entry.node, "each entry of do is one call: a tool's name and its input")
	}
	for name, input := range entry.value {
		fields, ok := input.value.(map[string]any)
		if !ok && input.value != nil {
			return reject(input.node, "the input of %s is not a mapping of its fields", name)
		}
		if fields == nil {
			fields = map[string]any{}
		}
		*c = call{name, fields}
	}
	return nil
}

// UnmarshalYAML reads and checks the error of a turn.
func (f *failure) UnmarshalYAML(decode decoder) error {
	type fields failure // without this method
	node, err := decodePlaced(decode, (*fields)(f))
	if err != nil {
		return err
	}
	if !slices.Contains([]llm.Kind{llm.Overloaded, llm.Unreachable, llm.Limited, llm.Incomplete, llm.ContextFull,
		llm.BadRequest, llm.Denied, llm.Spent}, f.Kind) {
		return reject(node, "an error's kind is "+
			"overloaded, unreachable, limited, incomplete, context_full, bad_request, denied or spent")
	}
	if f.Times.value < 0 {
		return reject(f.Times.node, "times is how often it fails: 1 or more")
	}
	f.Times.value = max(f.Times.value, 1)
	return nil
}

// cue is a regular expression, nil if none is given.
type cue struct{ *regexp.Regexp }

// UnmarshalYAML compiles the expression. An empty one is none.
func (c *cue) UnmarshalYAML(decode decoder) error {
	var text placed[string]
	err := decode(&text)
	if err != nil || text.value == "" {
		return err
	}
	if c.Regexp, err = regexp.Compile(text.value); err != nil {
		return reject(text.node, "this is not a regular expression: %v", err)
	}
	return nil
}

// duration is a time.Duration that is not negative. The library's own decoding would also take other forms.
type duration time.Duration

// UnmarshalYAML parses the duration. An empty text is none.
func (d *duration) UnmarshalYAML(decode decoder) error {
	var text placed[string]
	err := decode(&text)
	if err != nil || text.value == "" {
		return err
	}
	parsed, err := time.ParseDuration(text.value)
	if err != nil || parsed < 0 {
		return reject(text.node, "%q is not a duration: write it like 200ms or 2s", text.value)
	}
	*d = duration(parsed)
	return nil
}

// expectation says in words what the YAML library expected in place of a value of the wrong type. It
// returns "" if the error is of another kind, whose own message is clear.
func expectation(err error) string {
	kind := "a mapping of keys to values"
	if t, ok := errors.AsType[*yaml.TypeError](err); ok {
		switch t.DstType.Kind() {
		case reflect.String:
			kind = "text"
		case reflect.Slice:
			kind = "a list"
		case reflect.Int, reflect.Int64:
			kind = "a whole number"
		}
	} else if u, ok := errors.AsType[*yaml.UnexpectedNodeTypeError](err); !ok {
		return ""
	} else if u.Expected == ast.SequenceType {
		kind = "a list"
	}
	return kind + " is expected here"
}
