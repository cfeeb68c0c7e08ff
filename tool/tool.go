// Package tool makes tools of typed functions, and wraps tools.
//
// A tool is a value: New or Func with a name, a description that says when to use it, and a function whose
// argument is a struct. The struct's fields are the tool's input: `json` tags name them (`omitempty` makes
// one optional), `jsonschema` tags describe them. Input that does not fit never reaches the function: the
// model is told what is wrong and which fields there are.
//
// There are two kinds of failure. One that the model can do something about is a Result with IsError: the
// model reads it and tries again. One that it can do nothing about, because the runtime is in trouble or
// was told to stop, is an error, and ends the turn. FromError makes the first kind of an error, with the
// error's hint. Fatal marks an error as the second kind. An error of a function given to New ends the turn;
// of one given to Func, the model is told, unless Fatal has marked it.
//
// What a runtime must know of a tool is a property of the tool: the options ReadOnly, ReadOnlyIf, NeedsPlan and Polls
// set fields of its llm.Spec, and a Recoverer answers its own calls after a crash. Wrap puts around a tool
// what every tool needs, such as an audit. The tools themselves do not belong here: the standard ones are
// internal, and a program that embeds muster brings its own.
//
// Read in this order: tool.go (New and Func), schema.go and check.go (the input), errors.go and wrap.go (what
// goes around a tool).
//
// The signatures and the options stay compatible; options may be added. The schema that is made of a
// struct, and the words in which a model is told what is wrong with its input, may change with any version.
package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"muster/llm"
)

// New makes a tool of run, which several agents may call at once. An error of run ends the turn; what the
// model should read is a Result, such as llm.ErrorResult. New panics if In is not a struct that has a JSON
// schema, or not the input of an option, so the first test of the tool shows it.
func New[In any](
	name, description string, run func(ctx context.Context, in In) (llm.Result, error), o ...Option,
) llm.Tool {
	var opts settings
	for _, opt := range o {
		if opt != nil {
			opt(&opts)
		}
	}
	s := schemaOf[In](name, opts.enums)
	opts.spec.Name, opts.spec.Description, opts.spec.Schema = name, description, s.frozen
	if opts.reads != nil {
		reads := opts.reads.(func(In) bool)
		spec := opts.spec
		opts.spec.Reads = func(input json.RawMessage) bool {
			in, complaint := decode[In](s.shape, spec, input)
			return complaint == "" && reads(in)
		}
	}
	return &typed[In]{spec: opts.spec, shape: s.shape, run: run}
}

// Func makes a tool of a function that answers in text, and that several agents may call at once. The model
// is told its error, unless the error is Fatal or says that ctx is over.
func Func[In any](name, description string, run func(context.Context, In) (string, error), o ...Option) llm.Tool {
	return New(name, description, func(ctx context.Context, in In) (llm.Result, error) {
		text, err := run(ctx, in)
		switch {
		case err == nil:
			return Text(text), nil
		case ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))):
			err = Fatal(err)
		}
		return FromError(err)
	}, o...)
}

// Option is an option of New and Func.
type Option func(*settings)

// settings are what the options set: the spec without what the model is told, and enums.
type settings struct {
	spec  llm.Spec
	enums []enum
	reads any // of ReadOnlyIf, a func(In) bool
}

// ReadOnly says that the tool only reads: it may run beside other such calls of the same reply.
func ReadOnly() Option { return func(o *settings) { o.spec.ReadOnly = true } }

// ReadOnlyIf says that a call only reads if f reports so of its input, which is what New takes.
func ReadOnlyIf[In any](f func(In) bool) Option { return func(o *settings) { o.reads = f } }

// NeedsPlan says that the tool changes the files of a task, or lands them: a task that requires a plan
// refuses it until the plan is approved.
func NeedsPlan() Option { return func(o *settings) { o.spec.NeedsPlan = true } }

// Lasting says that the results of the tool stay whole when older ones are cleared from a conversation.
func Lasting() Option { return func(o *settings) { o.spec.Lasting = true } }

// Polls says that the tool is asked repeatedly until something has changed: a call that repeats with the
// same result does not mean that the model is caught in a loop.
func Polls() Option { return func(o *settings) { o.spec.Polls = true } }

// Enum says that a field takes only these values. A field of a field is named "items.status", whether items
// is an object or a list of them. It panics when there is no such field.
func Enum(field string, values ...string) Option {
	return func(o *settings) { o.enums = append(o.enums, enum{field, values}) }
}

// Text returns a result that says s. If s is empty, it says "Done.": no provider takes an empty text.
func Text(s string) llm.Result {
	return llm.Result{Parts: []llm.Part{llm.Text{Text: cmp.Or(s, "Done.")}}}
}

// Progress returns the function with which a running tool shows in one line what it does. It is never nil.
func Progress(ctx context.Context) func(string) {
	if f, ok := ctx.Value(progressKey{}).(func(string)); ok && f != nil {
		return f
	}
	return func(string) {}
}

// progressKey is the context key of the progress function, which llm.Tool.Run gets as an argument and the
// typed functions of New do not. It is for display only.
type progressKey struct{}

// typed is a tool that New has made.
type typed[In any] struct {
	spec  llm.Spec
	shape *shape
	run   func(context.Context, In) (llm.Result, error)
}

// Spec returns what New was given. It never changes.
func (t *typed[In]) Spec() llm.Spec { return t.spec }

// fitted returns what Fit does.
func (t *typed[In]) fitted(input json.RawMessage) json.RawMessage {
	if fitted, complaint := fit(t.shape, t.spec, input); complaint == "" {
		return fitted
	}
	return input
}

// Run checks the input and runs the function. The mark of Fatal is taken off its error.
func (t *typed[In]) Run(ctx context.Context, c llm.Call, progress func(string)) (r llm.Result, err error) {
	in, complaint := decode[In](t.shape, t.spec, c.Input)
	if complaint != "" {
		r = llm.ErrorResult("%s: %s", t.spec.Name, complaint)
	} else if r, err = t.run(context.WithValue(ctx, progressKey{}, progress), in); err != nil {
		if f, ok := errors.AsType[fatal](err); ok {
			err = f.error
		}
	}
	r.ID = c.ID
	return r, err
}

// decode makes an In of the input, or says in the model's words what is wrong with it. fit comes first: it knows
// fields that are missing, misspelt or in another form, which package json does not report.
func decode[In any](s *shape, spec llm.Spec, input json.RawMessage) (in In, complaint string) {
	if trimmed := bytes.TrimSpace(input); len(trimmed) == 0 || string(trimmed) == "null" {
		input = json.RawMessage("{}") // what some providers send for a tool without arguments
	}
	if input, complaint = fit(s, spec, input); complaint != "" {
		return in, complaint
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return in, fmt.Sprintf("the input does not fit: %v. %s", err, expected(s))
	}
	fitNames(&in)
	return in, ""
}
