package script

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"muster"
	"muster/internal/yamldoc"
	"muster/llm"
)

// What the file holds, before it is checked.
type (
	fileText struct {
		Speakers map[string][]turnText `yaml:"speakers"`
		Scenes   []sceneText           `yaml:"scenes"`
	}
	sceneText struct {
		Cue   string     `yaml:"cue"`
		Who   []string   `yaml:"who"`
		Turns []turnText `yaml:"turns"`
	}
	turnText struct {
		Cue   string           `yaml:"cue"`
		Until string           `yaml:"until"`
		Say   string           `yaml:"say"`
		Think string           `yaml:"think"`
		Do    []map[string]any `yaml:"do"`
		Wait  string           `yaml:"wait"`
		Stop  string           `yaml:"stop"`
		Error *errorText       `yaml:"error"`
	}
	errorText struct {
		Kind  string `yaml:"kind"`
		After string `yaml:"after"`
		Times int    `yaml:"times"`
	}
)

// keys is the hint that lists all keys of the format.
const keys = "a script has speakers and scenes; a scene has cue, who, turns; " +
	"a turn has cue, until, say, think, do, wait, stop, error; an error has kind, after, times"

// Load reads a script from a file. Errors are NotFound or Invalid, with the line.
func Load(path string) (*Script, error) {
	data, err := os.ReadFile(path)
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

// parse reads a script; file is its name in errors.
func parse(file string, data []byte) (*Script, error) {
	root, err := yamldoc.Parse(file, data)
	if err != nil {
		return nil, withKeys(err)
	}
	var text fileText
	if err := yaml.UnmarshalWithOptions(muster.TrimBOM(data), &text, yaml.Strict()); err != nil {
		return nil, withKeys(yamldoc.Error(file, err, expectation(err)))
	}
	if len(text.Speakers) == 0 && len(text.Scenes) == 0 {
		return nil, muster.Errorf(muster.Invalid, "%s: it is empty", file).WithHint(keys)
	}
	r := &reader{file: file, root: root, groups: map[string]bool{}}
	return r.script(text)
}

// reader checks what a file holds and makes the script from it. It reports the first mistake.
type reader struct {
	file   string
	root   ast.Node
	groups map[string]bool // every name that a cue captures
	err    error           // the first one
}

// script returns the whole script.
func (r *reader) script(text fileText) (*Script, error) {
	s := &Script{file: r.file, speakers: map[string][]*turn{}}
	for name, turns := range text.Speakers {
		s.speakers[name] = r.turns(turns, "speakers", name)
	}
	for i, sc := range text.Scenes {
		if sc.Cue == "" {
			r.reject("a scene needs a cue, else it is never entered", "scenes", i)
		}
		if len(sc.Turns) == 0 {
			r.reject("a scene needs turns", "scenes", i)
		}
		s.scenes = append(s.scenes, &scene{cue: r.cue(sc.Cue, "scenes", i, "cue"), who: sc.Who,
			turns: r.turns(sc.Turns, "scenes", i, "turns")})
	}
	for name, turns := range text.Speakers {
		r.checkValues(turns, "speakers", name)
	}
	for i, sc := range text.Scenes {
		r.checkValues(sc.Turns, "scenes", i, "turns")
	}
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// turns returns a list of turns. path says where it is in the file.
func (r *reader) turns(texts []turnText, path ...any) (turns []*turn) {
	for i, t := range texts {
		turns = append(turns, r.turn(t, appendPath(path, i)))
	}
	return turns
}

// turn returns one turn.
func (r *reader) turn(t turnText, path []any) *turn {
	line, _ := r.place(path)
	out := &turn{line: line, say: t.Say, think: t.Think, cue: r.cue(t.Cue, appendPath(path, "cue")...),
		until: r.cue(t.Until, appendPath(path, "until")...),
		wait:  r.duration(t.Wait, appendPath(path, "wait"))}
	for i, one := range t.Do {
		if len(one) != 1 {
			r.reject("each entry of do is one call: a tool's name and its input", appendPath(path, "do", i)...)
		}
		for name, v := range one {
			input, ok := v.(map[string]any)
			if !ok && v != nil {
				r.reject("the input of "+name+" is not a mapping of its fields", appendPath(path, "do", i, name)...)
			}
			if input == nil {
				input = map[string]any{}
			}
			out.calls = append(out.calls, call{name, input})
		}
	}
	switch out.stop = llm.Stop(t.Stop); {
	case out.stop != "" && out.stop != llm.StopEnd && out.stop != llm.StopMax && out.stop != llm.StopRefused:
		r.reject("a turn's stop is end, max_tokens or refused", appendPath(path, "stop")...)
	case out.stop != "" && len(out.calls) > 0:
		r.reject("a turn with calls stops for their results: leave stop out, or do", appendPath(path, "stop")...)
	case out.stop == "" && len(out.calls) > 0:
		out.stop = llm.StopTools
	case out.stop == "":
		out.stop = llm.StopEnd
	}
	if t.Error != nil {
		out.fail = r.failure(*t.Error, appendPath(path, "error"))
	}
	if t.Say == "" && t.Think == "" && len(t.Do) == 0 {
		r.reject("a turn needs say, think or do: also one that fails first, for the time after", path...)
	}
	return out
}

// failure returns the error of a turn.
func (r *reader) failure(e errorText, path []any) *failure {
	f := &failure{kind: llm.Kind(e.Kind), after: r.duration(e.After, appendPath(path, "after")), times: e.Times}
	switch f.kind {
	case llm.Overloaded, llm.Limited, llm.Incomplete, llm.ContextFull, llm.BadRequest, llm.Denied, llm.Spent:
	default:
		r.reject("an error's kind is overloaded, limited, incomplete, context_full, bad_request, denied or spent",
			path...)
	}
	if f.times < 0 {
		r.reject("times is how often it fails: 1 or more", appendPath(path, "times")...)
	}
	f.times = max(f.times, 1)
	return f
}

// cue compiles a regular expression.
func (r *reader) cue(text string, path ...any) *regexp.Regexp {
	if text == "" {
		return nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		r.reject("this is not a regular expression: "+err.Error(), path...)
		return nil
	}
	for _, name := range re.SubexpNames() {
		r.groups[name] = true
	}
	return re
}

// duration parses a duration.
func (r *reader) duration(text string, path []any) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		r.reject(strconv.Quote(text)+" is not a duration: write it like 200ms or 2s", path...)
	}
	return d
}

// checkValues checks that every value in the turns can become known. A misspelt one is found when the script is read,
// and not in the middle of a run. It comes after all cues were read, because a value may be captured anywhere.
func (r *reader) checkValues(turns []turnText, path ...any) {
	for i, t := range turns {
		texts := []string{t.Say, t.Think}
		for _, one := range t.Do {
			texts = stringsIn(texts, one)
		}
		for _, text := range texts {
			for _, name := range valuesIn(text) {
				if !isBuiltIn(name) && !r.groups[name] {
					r.reject("nothing can fill in ${"+name+"}: no cue has a group (?P<"+name+">...), "+
						"and the values that are always there are "+
						builtIns+" (for the text itself write $${"+name+"})", appendPath(path, i)...)
				}
			}
		}
	}
}

// reject remembers a mistake with its place, if it is the first one. Later mistakes may only follow from it.
func (r *reader) reject(what string, path ...any) {
	if r.err == nil {
		line, column := r.place(path)
		r.err = muster.Errorf(muster.Invalid, "%s:%d:%d: %s", r.file, line, column, what)
	}
}

// place returns where the node at the path begins, or the nearest one above it.
func (r *reader) place(path []any) (line, column int) {
	node := r.root
	for _, step := range path {
		next := childNode(node, step)
		if next == nil {
			break
		}
		node = next
	}
	return yamldoc.Place(node)
}

// childNode returns the value of a key (a string), or an entry of a list (an int).
func childNode(n ast.Node, step any) ast.Node {
	switch n := n.(type) {
	case *ast.AnchorNode:
		return childNode(n.Value, step)
	case *ast.SequenceNode:
		if i, ok := step.(int); ok && i < len(n.Values) {
			return n.Values[i]
		}
	case *ast.MappingNode:
		for _, v := range n.Values {
			if found := childNode(v, step); found != nil {
				return found
			}
		}
	case *ast.MappingValueNode:
		if key, ok := step.(string); ok && n.Key.GetToken().Value == key {
			return n.Value
		}
	}
	return nil
}

// appendPath returns a longer path without changing the shorter one, which is used for several keys.
func appendPath(path []any, more ...any) []any { return append(append([]any{}, path...), more...) }

// withKeys adds the hint that lists all keys to an error that has a place in the file.
func withKeys(err error) error {
	if e, ok := errors.AsType[*muster.Error](err); ok {
		return e.WithHint(keys)
	}
	return err
}

// expectation says in words what the YAML library expected in place of a value of the wrong type. It returns "" if the
// error is of another kind, whose own message is clear.
func expectation(err error) string {
	if t, ok := errors.AsType[*yaml.TypeError](err); ok {
		return expectedKind(t.DstType) + " is expected here"
	}
	u, ok := errors.AsType[*yaml.UnexpectedNodeTypeError](err)
	switch {
	case ok && u.Expected == ast.SequenceType:
		return "a list is expected here"
	case ok:
		return "a mapping of keys to values is expected here"
	}
	return ""
}

// expectedKind says in words what YAML a Go type is read from.
func expectedKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "a list"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	}
	return "a mapping of keys to values"
}
