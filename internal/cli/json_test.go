package cli

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster"
	"muster/internal/config"
	"muster/internal/face"
	"muster/internal/printed"
	"muster/internal/spend"
	"muster/internal/testing/require"
	"muster/internal/trust"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/llm/catalogue"
	"muster/team"
)

// documents are what --json prints, by the section of docs/json.md. What has a section of its own is not taken apart in
// another one.
var documents = map[string]any{
	"collision": &muster.Collision{},
	"diff":      &team.Diff{}, "comment": &team.Comment{}, "origin of a line": &team.Why{}, "skill": &skillFields{},
	"model": &catalogue.Model{}, "grant": &trust.Grant{}, "target": &team.TargetState{}, "found state": &workspace.FoundState{},
	"landing": &view.QueuedLanding{},
	"status":  &status{}, "run": &muster.Run{}, "task": &muster.Task{}, "member": &muster.Member{}, "stopped": &team.StopResult{}, "mail": &muster.Message{},
	"request": &muster.Request{}, "question": &face.Question{}, "lane": &muster.Lane{}, "window": &view.Window{}, "event": &muster.Event{}, "setting": &config.Value{}, "proposal": &proposal{}, "proposal of settings": &initResult{}, "hook": &hookFields{}, "finding": &workspace.Finding{}, "archive": &workspace.ArchivedTeam{},
	"shared run": &sharedFile{}, "version": &build{}, "merge": &team.Merged{}, "undo": &team.Undone{}, "pr": &team.PullRequest{}, "clean": &team.Cleanable{}, "receipt": &team.Receipt{}, "kept receipt": &team.CheckReceipt{}, "role": &roleFields{}, "memory": &remembered{}, "MCP server": &mcpFields{}, "drill": &drillReport{}, "drilled goal": &drillGoal{}, "cost": &view.Spending{}, "sum": &spend.Sum{},
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Name != "Extra" && v.Type().Field(i).Name != "Fields" {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key := reflect.New(v.Type().Key()).Elem()
		fill(key)
		v.SetMapIndex(key, reflect.Zero(v.Type().Elem()))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	}
}

// names are the fields of an encoded document; those of a task's own objects stand behind a dot.
func names(t *testing.T, v any) (all []string) {
	t.Helper()
	data := require.Value(printed.Document(v))(t)
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &fields))
	for name, value := range fields {
		all = append(all, name)
		var inner map[string]json.RawMessage
		if _, is := v.(*muster.Task); is && json.Unmarshal(value, &inner) == nil {
			for below := range inner {
				all = append(all, name+"."+below)
			}
		}
	}
	slices.Sort(all)
	return all
}

// The names on the page are exactly those that are printed, and those that can be missing are marked.
func TestJSONIsAsDocumented(t *testing.T) {
	data := require.Value(os.ReadFile(filepath.Join("..", "..", "docs", "json.md")))(t)
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\??) ?\\|")
	page := map[string]map[string]bool{}
	for _, section := range strings.Split(string(data), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		page[title] = map[string]bool{}
		for _, m := range row.FindAllStringSubmatch(body, -1) {
			page[title][m[1]] = m[2] == "?"
		}
	}
	delete(page, "what changed")
	if diff := cmp.Diff(slices.Sorted(maps.Keys(page)), slices.Sorted(maps.Keys(documents))); diff != "" {
		t.Fatalf("sections (- page, + printed):\n%s", diff)
	}
	for title, v := range documents {
		always := names(t, v)
		fill(reflect.ValueOf(v).Elem())
		if diff := cmp.Diff(slices.Sorted(maps.Keys(page[title])), names(t, v)); diff != "" {
			t.Errorf("%s (- page, + printed):\n%s", title, diff)
		}
		for name, optional := range page[title] {
			if !strings.Contains(name, ".") && optional == slices.Contains(always, name) {
				t.Errorf("%s: %s is marked wrongly as to whether it can be missing", title, name)
			}
		}
	}
}
