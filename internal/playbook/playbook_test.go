package playbook

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/require"
)

func read(text string, params map[string]string, tracked ...string) (Book, error) {
	return Read(Source{File: "week.yaml", Data: []byte(text), Params: params,
		Tracked: func() ([]string, error) { return tracked, nil }})
}

const release = `
name: release {{version}}
description: What a release needs.
params:
  version: {description: the new one, required: true}
  packages: {default: "api, web"}
  who: coder
tasks:
  - id: publish
    subject: Publish {{ version }}
    blocked_by: [test, notes]
    require_plan: true
  - id: notes
    subject: Write the notes
    description: |
      Of {{version}}, with ${{ matrix.os }} and {{ .Name }} as they are.
    priority: 3
  - id: update
    for_each: "{{packages}}"
    subject: Update {{item}}
    role: "{{who}}"
  - id: test-{{item}}
    for_each: [api, web]
    subject: Test {{item}}
    blocked_by: update/{{item}}
  - id: test
    subject: Test all of it
    blocked_by: ["test-{{item}}", update]
`

func TestTasksOfAPlaybook(t *testing.T) {
	b := require.Value(read(release, map[string]string{"version": "1.{{who}}"}))(t)
	if b.Name != "release 1.{{who}}" || b.Description != "What a release needs." || len(b.Hash) != 64 {
		t.Errorf("%q, %q, %q", b.Name, b.Description, b.Hash)
	}
	var got []string
	for _, x := range b.Tasks {
		got = append(got, fmt.Sprintf("%s|%s|%s|%s|%d|%t", x.Key, x.Subject, strings.Join(x.BlockedBy, ","), x.Role,
			x.Priority, x.RequirePlan))
	}
	want := []string{
		"notes|Write the notes|||3|false",
		"update/api|Update api||coder|0|false",
		"test-api|Test api|update/api||0|false",
		"update/web|Update web||coder|0|false",
		"test-web|Test web|update/web||0|false",
		"test|Test all of it|test-api,test-web,update/api,update/web||0|false",
		"publish|Publish 1.{{who}}|notes,test||0|true",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	at := func(key string) int {
		return slices.IndexFunc(b.Tasks, func(x muster.PlannedTask) bool { return x.Key == key })
	}
	for _, x := range b.Tasks {
		for _, on := range x.BlockedBy {
			if at(on) >= at(x.Key) {
				t.Errorf("%s comes before %s, which it waits for", x.Key, on)
			}
		}
	}
	if text := b.Tasks[at("notes")].Description; text != "Of 1.{{who}}, with ${{ matrix.os }} and {{ .Name }} as they are." {
		t.Errorf("%q", text)
	}
}

func TestAGlobMatchesTrackedFiles(t *testing.T) {
	b, err := read("tasks:\n- id: mod\n  for_each: {glob: '**/go.mod'}\n  subject: 'Update {{item}}'\n", nil,
		"README", "a/go.mod", "go.mod", "b/c/go.mod", "go.mod.bak")
	if err != nil || len(b.Tasks) != 3 || b.Tasks[2].Subject != "Update b/c/go.mod" || b.Name != "week" {
		t.Errorf("%+v, %v", b, err)
	}
	boom := errors.New("git is gone")
	_, err = Read(Source{File: "f", Data: []byte("tasks: [{id: a, subject: b, for_each: {glob: x}}]"),
		Tracked: func() ([]string, error) { return nil, boom }})
	if !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}

// What is wrong in a file is refused with its place and what to do.
func TestMistakes(t *testing.T) {
	many := func(n int) string { return strings.Repeat("x,", n) }
	for _, c := range []struct{ text, want string }{
		{"", "week.yaml:1:1: a playbook is expected here, with name, "},
		{"[a]", "week.yaml:1:1: a playbook is expected here"},
		{"name: x\n", "week.yaml:1:1: a playbook has a list of tasks"},
		{"tasks: []\n", "week.yaml:1:1: a playbook has a list of tasks"},
		{"tsks: []\n", `week.yaml:1:1: a playbook has no "tsks" (did you mean tasks?)`},
		{"name: a\nname: b\n", "week.yaml:2:1: "},
		{"tasks:\n- id: a\n  subjct: b\n", `week.yaml:3:3: a task has no "subjct" (did you mean subject?)`},
		{"tasks:\n- id: a\n", "week.yaml:2:3: a task needs an id and a subject"},
		{"tasks:\n- id: a\n  subject: [b]\n", "week.yaml:3:12: a text is expected here"},
		{"tasks:\n- id: a\n  subject: {{b}}\n", "week.yaml:3:1"},
		{"tasks:\n- {id: a, subject: b}\n- {id: a, subject: c}\n", `week.yaml:3:8: another task has the id "a" already`},
		{"tasks:\n- {id: a, subject: b, blocked_by: [c]}\n", `week.yaml:2:36: no task has the id "c"`},
		{"tasks:\n- {id: build, subject: b}\n- {id: c, subject: b, blocked_by: biuld}\n", "(did you mean build?)"},
		{"tasks:\n- {id: a, subject: b, blocked_by: c}\n- {id: c, subject: b, blocked_by: a}\n",
			"week.yaml:2:4: these tasks wait for each other: a -> c -> a"},
		{"tasks:\n- {id: a, subject: b, blocked_by: a}\n", "wait for each other: a -> a"},
		{"tasks:\n- {id: a, subject: '{{x}}'}\n", `week.yaml:2:20: there is no parameter "x": declare it under params`},
		{"tasks:\n- {id: a, subject: '{{item}}'}\n", "{{item}} stands only in the texts of a task with for_each"},
		{"params: {x: 1}\ntasks:\n- {id: a, subject: b}\n", "week.yaml:1:10: no text uses the parameter x"},
		{"params: {x: }\ntasks:\n- {id: a, subject: '{{x}}'}\n", "week.yaml:1:10: the parameter x has no value"},
		{"params: {x: {required: true}}\ntasks:\n- {id: a, subject: '{{x}}'}\n", "the parameter x has no value"},
		{"params: {x: {required: true, default: 1}}\ntasks:\n- {id: a, subject: '{{x}}'}\n", "has no default: leave one"},
		{"params: {item: 1}\n", `"item" cannot be the name of a parameter`},
		{"params: [x]\n", "week.yaml:1:9: params are expected here"},
		{"tasks:\n- {id: a, subject: b, priority: high}\n", "week.yaml:2:33: priority is a whole number"},
		{"tasks:\n- {id: a, subject: b, require_plan: yes}\n", "true or false is expected here"},
		{"tasks:\n- {id: a, subject: b, role: '1'}\n", `"1" cannot be a role`},
		{"tasks:\n- {id: a, subject: \"b\\e[31m\"}\n", "the subject has a control character"},
		{"tasks:\n- {id: a, subject: " + strings.Repeat("b", 201) + "}\n", "the subject has 201 characters"},
		{"tasks:\n- {id: a, subject: b, for_each: []}\n", "week.yaml:2:33: for_each has no items"},
		{"tasks:\n- {id: a, subject: b, for_each: {glob: '*.go'}}\n", "for_each has no items"},
		{"tasks:\n- {id: a, subject: b, for_each: {glob: '[x'}}\n", `"[x" is no pattern of paths`},
		{"tasks:\n- {id: a, subject: b, for_each: {run: ls}}\n", `for_each has no "run"`},
		{"tasks:\n- {id: a, subject: b, for_each: [x, x]}\n", `there are two tasks with the id "a/x"`},
		{"tasks:\n- {id: a, subject: b, for_each: '" + many(501) + "'}\n", "a playbook has at most 500 tasks"},
		{"tasks: &t\n- {id: a, subject: b}\n", "a playbook has a list of tasks"},
		{"tasks:\n- &t {id: a, subject: b}\n- *t\n", "a task is expected here"},
		{"tasks:\n- {id: a, subject: b}\n---\nname: c\n", "only one is read"},
	} {
		_, err := read(c.text, nil)
		if !errors.Is(err, muster.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q: %v, want %s", c.text, err, c.want)
		}
	}
	_, err := read(release, map[string]string{"version": "1", "package": "x"})
	if err == nil || !strings.HasPrefix(err.Error(), `week.yaml has no parameter "package" (did you mean packages?)`) {
		t.Errorf("got %v", err)
	}
}

// The texts of all tasks together are bounded: they are kept in the record of the run.
func TestTheTextsAreBounded(t *testing.T) {
	text := "tasks:\n- {id: a, subject: b, for_each: '" + strings.Repeat("x,", 1) + "', description: " +
		strings.Repeat("d", 60<<10) + "}\n"
	if _, err := read(text, nil); err != nil {
		t.Error(err)
	}
	var items []string
	for i := range 20 {
		items = append(items, fmt.Sprint(i))
	}
	text = strings.Replace(text, "x,", strings.Join(items, ","), 1)
	if _, err := read(text, nil); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(release))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := Read(Source{File: "f", Data: data, Params: map[string]string{"version": "1"},
			Tracked: func() ([]string, error) { return []string{"a", "b/c"}, nil }})
		if err == nil && (len(b.Tasks) == 0 || len(b.Tasks) > maxTasks) {
			t.Errorf("%d tasks", len(b.Tasks))
		}
	})
}
