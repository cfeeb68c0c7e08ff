package teammate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"muster"
	"muster/internal/hooks"
	"muster/internal/paths"
	"muster/internal/redact"
	"muster/internal/text"
	"muster/internal/tool/agent"
	"muster/internal/tool/code"
	"muster/journal"
	"muster/llm"
	"muster/tool"
)

type wrappers struct {
	secrets *redact.Secrets
	permits *permits
	hooks   *userHooks
	files   *fileTools
	scratch *scratchView
	claims  *claims
	own     *ownLane
	onePath *onePath
	todo    *agent.Todo
}

// around puts the wrappers around tools. The audit is the outermost, so that its events have what the model sees, and
// also what the plan gate refused.
func (w *wrappers) around(list []llm.Tool, nested *nestedInstructions, dir *workdir, subagent bool) []llm.Tool {
	out := make([]llm.Tool, len(list))
	for i, t := range list {
		_, hasRecords := t.(tool.Recoverer)
		t = tool.Wrap(t, w.own.around)
		// Inside of the others, so that neither a file of a long result nor an event has a secret that the result had.
		t = tool.Wrap(t, w.hideSecrets)
		t = tool.Wrap(t, w.permits.around(t, dir)) // inside of the hooks, which may change what a call is
		if s := t.Spec(); s.NeedsPlan {
			t = tool.Wrap(t, func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
				if s.OnlyReads(c.Input) {
					return next(ctx, c)
				}
				return w.claims.plans.gate(ctx, c, next)
			})
		}
		t = tool.Wrap(t, w.hooks.around(t, dir))
		t = tool.Wrap(t, w.onePath.around(t, dir))
		t = tool.Limit(t, tool.MaxOutput, func(_ context.Context, c llm.Call, whole string) (string, error) {
			return w.files.keep(fmt.Sprintf("%s-%.150s.txt", c.Name, url.QueryEscape(c.ID)), whole)
		})
		t = tool.Wrap(t, nested.around)
		if !subagent { // it has no scratch checkout of its own
			t = tool.Wrap(t, w.scratch.around)
		}
		out[i] = tool.Wrap(t, func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
			return w.audit(ctx, c, next, hasRecords)
		})
	}
	return out
}

func (w *wrappers) hideSecrets(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
	r, err := next(ctx, c)
	return w.secrets.Result(r), w.secrets.Error(err)
}

// maxEventDiff limits the lines of the diff in a tool.ended event, in bytes.
const maxEventDiff = 4000

// audit runs a call between the two events that tell of it. A call that the end of the process has cut off stays open
// if its tool has records that tell its outcome.
func (w *wrappers) audit(ctx context.Context, c llm.Call, next tool.Next, hasRecords bool) (llm.Result, error) {
	helper := helperOf(ctx)
	event := func(kind string, fields map[string]any) {
		fields["tool"], fields["call"] = c.Name, c.ID // the transcript has the whole call by its id
		w.claims.diary.event(ctx, kind, helper.sign(fields))
	}
	event(journal.ToolStarted, map[string]any{"text": text.CutBytes(Gist(c), 120)})
	started, waited := time.Now(), new(atomic.Int64)
	ctx = context.WithValue(ctx, waitKey{}, waited)
	var changes []code.FileChange
	r, err := next(code.WithChanges(ctx, func(all []code.FileChange) { changes = all }), c)
	end := map[string]any{"seconds": seconds(time.Since(started) - time.Duration(waited.Load()))}
	failed := r.IsError || err != nil
	if len(changes) > 0 && !failed {
		diff, added, removed := code.Unified(changes, w.secrets.String, maxEventDiff)
		end["output"], end["added"], end["removed"] = diff, added, removed
	} else if len(r.Parts) > 0 { // further parts are instructions and notes
		if shown := code.Excerpt(c, llm.Result{Parts: r.Parts[:1]}.Text()); shown != "" {
			end["output"] = shown
		}
	}
	if !failed && writesFiles(code.AsPatch(c).Name) {
		w.claims.noteWrite()
	}
	if failed {
		said := textOf(llm.Message{Parts: r.Parts})
		end["error"] = text.CutBytes(said, 200)
		if c.Name == "bash" && code.CouldNotStart(said) {
			end["not_started"] = true
		}
	}
	event(journal.ToolEnded, end)
	if !failed && helper == nil && w.todo.Owns(c) {
		done, of, current := w.todo.Progress()
		w.claims.diary.event(ctx, journal.MemberSteps, map[string]any{"done": done, "of": of,
			"text": text.CutBytes(current, 120)})
	}
	// An error of a call that was cut off says nothing about what it did: answerCalls reads its outcome from records.
	if failed && context.Cause(ctx) != nil && hasRecords {
		w.claims.phase.noteOpen(c.ID)
	}
	return r, err
}

// waitKey is the context key of the nanoseconds for which a call has waited for answers to requests.
type waitKey struct{}

// noteWait adds the time since a moment to the wait of the call whose context it is.
func noteWait(ctx context.Context, since time.Time) {
	if waited, ok := ctx.Value(waitKey{}).(*atomic.Int64); ok {
		waited.Add(int64(time.Since(since)))
	}
}

// maxHookStops is how often in a row a hook can make a member go on that would stop: one that is never content costs no
// endless run.
const maxHookStops = 3

// userHooks runs the hooks of the user: commands for moments of the member's work.
type userHooks struct {
	runner  *hooks.Runner
	team    muster.Name
	member  muster.Name
	role    string
	model   string // its name
	home    paths.Dir
	environ []string
	tasks   holder
}

func (u *userHooks) has(event hooks.Event, names ...string) bool {
	return u.runner.Has(event, names...)
}

// run runs the hooks of an event in a directory, "" for the root. names are its subject, fields what the hooks read.
func (u *userHooks) run(
	ctx context.Context, event hooks.Event, dir string, names []string, fields map[string]any,
) (hooks.Outcome, error) {
	if !u.has(event, names...) {
		return hooks.Outcome{}, nil
	}
	if dir == "" {
		dir = string(u.home)
	}
	fields["transcript_path"] = filepath.Join(u.home.Transcripts(), string(u.member), "log.jsonl")
	t, _ := u.tasks.CurrentTask()
	return u.runner.Run(ctx, hooks.Moment{Event: event, Names: names, Fields: fields, Member: u.member, Team: u.team,
		Task: t.ID, Dir: dir, Env: code.Environ(ctx, u.environ, dir)})
}

// created runs the hooks for a task that the runtime makes for the member, and returns what they say.
func (u *userHooks) created(ctx context.Context, subject, description string) (string, error) {
	t := muster.Task{Subject: subject, Description: description}
	o, err := u.run(ctx, hooks.TaskCreated, "", nil, taskFields(t))
	if err == nil && o.Blocked {
		err = muster.Errorf(muster.Invalid, "a hook of the user refused a task for these changes: %s", o.Reason)
	}
	return hookTexts(o.Context), err
}

func taskFields(t muster.Task) map[string]any {
	return map[string]any{"task_subject": t.Subject, "task_description": t.Description}
}

func hookTexts(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return "<hook>\n" + text.EscapeTags(strings.Join(texts, "\n")) + "\n</hook>"
}

// around returns what runs the hooks around calls of a tool, and nil where no hook is for the tool.
func (u *userHooks) around(t llm.Tool, dir *workdir) func(context.Context, llm.Call, tool.Next) (llm.Result, error) {
	names := hooks.ToolNames(t.Spec().Name)
	if t.Spec().Name == "call_tool" { // which tool it calls is known with the call
		names = nil
	}
	if event := taskEvents[t.Spec().Name]; !u.has(hooks.PreToolUse, names...) &&
		!u.has(hooks.PostToolUse, names...) && !u.has(event) {
		return nil
	}
	return func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
		// Hooks see what the tool will read, and not another spelling of it.
		c.Input = tool.Fit(t, c.Input)
		h := hookedCall{hooks: u, call: c}
		// Where the tool cannot work, it says so itself.
		if at, err := dir.Workdir(ctx); err == nil {
			h.dir, h.start = at.Dir, at.Start()
		}
		r, err := h.before(ctx)
		if err != nil || r.IsError {
			return r, err
		}
		if r, err = next(ctx, h.call); err == nil && !r.IsError {
			err = h.after(ctx, r)
		}
		if text := hookTexts(h.texts); text != "" && err == nil {
			r.Parts = append(r.Parts, llm.Text{Text: "\n" + text})
		}
		return r, err
	}
}

var taskEvents = map[string]hooks.Event{"task_create": hooks.TaskCreated, "complete_task": hooks.TaskCompleted}

type hookedCall struct {
	hooks *userHooks
	call  llm.Call // as hooks have changed it
	dir   string   // where the tool works
	start string   // where relative paths begin
	texts []string // for the model
}

func (h *hookedCall) run(
	ctx context.Context, event hooks.Event, c hooks.ToolCall, more map[string]any,
) (hooks.Outcome, error) {
	fields := map[string]any{"tool_name": c.Names[0], "tool_input": c.Input, "tool_use_id": h.call.ID}
	if helper := helperOf(ctx); helper != nil {
		fields["agent_id"], fields["agent_type"] = helper.name, "subagent"
	}
	maps.Copy(fields, more)
	o, err := h.hooks.run(ctx, event, h.dir, c.Names, fields)
	h.texts = append(h.texts, o.Context...)
	return o, err
}

// before runs the hooks before the call, and those of what it does to a task. They may refuse it, or change its input.
func (h *hookedCall) before(ctx context.Context) (refused llm.Result, err error) {
	refuse := func(reason string) llm.Result {
		return llm.ErrorResult("%s was not called: a hook of the user refused it: %s", h.call.Name,
			text.EscapeTags(reason))
	}
	for _, c := range hooks.Calls(h.call, h.start) {
		o, err := h.run(ctx, hooks.PreToolUse, c, nil)
		if err != nil || o.Blocked {
			return refuse(o.Reason), err
		}
		if o.Input != nil {
			h.call = c.Changed(o.Input)
			h.texts = append(h.texts, "The input of this call was changed to "+string(h.call.Input))
		}
	}
	event := taskEvents[h.call.Name]
	if !h.hooks.has(event) {
		return refused, nil
	}
	var in struct {
		Subject, Description, Summary string
		TaskID                        muster.TaskID `json:"task_id"`
	}
	task, _ := h.hooks.tasks.CurrentTask()
	if json.Unmarshal(h.call.Input, &in) != nil || event == hooks.TaskCompleted && in.TaskID != task.ID {
		return refused, nil // the tool says what is wrong with it
	}
	if event == hooks.TaskCreated {
		task = muster.Task{Subject: in.Subject, Description: in.Description}
	}
	fields := taskFields(task)
	fields["summary"] = in.Summary
	o, err := h.hooks.run(ctx, event, h.dir, nil, fields)
	if h.texts = append(h.texts, o.Context...); err != nil || o.Blocked {
		return refuse(o.Reason), err
	}
	return refused, nil
}

// after runs the hooks after the call has done its work. They cannot undo it: what they say is for the model.
func (h *hookedCall) after(ctx context.Context, r llm.Result) error {
	for _, c := range hooks.Calls(h.call, h.start) {
		response := map[string]any{"success": true, "content": r.Text(), "stdout": r.Text()}
		if path, isFile := c.Input["file_path"]; isFile {
			response["filePath"] = path
		}
		o, err := h.run(ctx, hooks.PostToolUse, c, map[string]any{"tool_response": response})
		if err != nil {
			return err
		}
		if o.Blocked {
			h.texts = append(h.texts, "A hook of the user objects to what this call has done: "+o.Reason)
		}
	}
	return nil
}

// start runs the hooks of a conversation that begins ("startup") or goes on ("resume"), and returns what they say.
func (u *userHooks) start(ctx context.Context, source string) (string, error) {
	o, err := u.run(ctx, hooks.SessionStart, "", []string{source},
		map[string]any{"source": source, "model": u.model, "agent_type": u.role})
	return hookTexts(o.Context), err
}

// prompt runs the hooks of words of the user to the lead. It returns what they say to the lead, or why they refuse.
func (u *userHooks) prompt(ctx context.Context, text string) (said, refused string, err error) {
	o, err := u.run(ctx, hooks.UserPromptSubmit, "", nil, map[string]any{"prompt": text})
	return hookTexts(o.Context), o.Reason, err
}

func stopFields(isActive bool, words string) map[string]any {
	return map[string]any{"stop_hook_active": isActive, "last_assistant_message": words}
}
