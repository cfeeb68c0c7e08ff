package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
)

// seedNames are the names that are not snake_case, each with the reason.
var seedNames = map[string]string{
	"blockedBy": "the name in the task files of other programs, which test it for emptiness",
}

// dataMaps are the fields with objects whose keys are data and not names: of members, tasks, models and their like.
var dataMaps = map[string]bool{"members": true, "agents": true, "tasks": true, "models": true, "lanes": true, "ports": true, "env": true,
	"schema": true}

// noJSON are the commands that print nothing with --json, each with the reason.
var noJSON = map[string]string{
	"muster":               "the conversation is for people",
	"muster task":          "prints its help",
	"muster team":          "prints its help",
	"muster mail":          "prints its help",
	"muster worktree":      "prints its help",
	"muster attach":        "the conversation is for people; after the end of a run it prints a summary",
	"muster watch":         "the full screen is for people",
	"muster completion":    "prints a script of a shell",
	"muster join":          "prints the events that muster run prints, and needs a team at work",
	"muster demo":          "prints the events that muster run prints",
	"muster web":           "serves until it is interrupted; it prints url alone",
	"muster worktree open": "serves until it is interrupted, and prints text",
	"muster mcp login":     "prints an empty object, after a login in a browser",
	"muster mcp logout":    "prints an empty object",
	"muster stop":          "prints what muster team stop prints, and needs a team at work",
}

var (
	snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	timeName  = regexp.MustCompile(`(^|_)(at|time|ts|timestamp|since|until|deadline|started|ended|created|updated|made|used|now)$`)
	// A duration has its unit in its name.
	durationName = regexp.MustCompile(`(^|_)(timeout|duration|elapsed|took|age|away|waited|lived)$`)
)

// isTime reports whether a field of this name has a time. A count of what has not started has none.
func isTime(name string) bool { return timeName.MatchString(name) && name != "not_started" }

// formErrors returns what is wrong with the form of a document that --json has printed: names that are not snake_case,
// times that are not RFC 3339 text, and durations without their unit.
func formErrors(v any, path string) (errs []error) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			errs = append(errs, formErrors(x, path+"[]")...)
		}
	case map[string]any:
		last := path[strings.LastIndexByte(path, '.')+1:]
		for name, x := range v {
			at := path + "." + name
			if !dataMaps[last] {
				errs = append(errs, nameErrors(name, at, x)...)
			}
			// A schema is a server's.
			if _, isNumber := x.(float64); name != "schema" && !(isNumber && isTime(name)) {
				errs = append(errs, formErrors(x, at)...)
			}
		}
	case float64:
		if v > 1e9 && v < 1e10 {
			errs = append(errs, fmt.Errorf("%s: %.0f looks like Unix seconds", path, v))
		}
	}
	return errs
}

func nameErrors(name, path string, value any) (errs []error) {
	if !snakeCase.MatchString(name) && seedNames[name] == "" {
		errs = append(errs, fmt.Errorf("%s: the name is not snake_case", path))
	}
	_, isNumber := value.(float64)
	_, isBool := value.(bool)
	if isTime(name) && value != nil && !isBool {
		text, _ := value.(string)
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			errs = append(errs, fmt.Errorf("%s: %v is not a time in RFC 3339", path, value))
		}
	}
	if isNumber && durationName.MatchString(name) {
		errs = append(errs, fmt.Errorf("%s: the name of the duration has no unit", path))
	}
	return errs
}

// printedJSON is the value of a script with the commands that have printed JSON in it.
type printedJSON struct{}

// checkJSON checks the form of what a command of a script has printed with --json. Words that are no JSON are an error
// message, or those of a program that the command has started.
func checkJSON(ts *testscript.TestScript, root *cobra.Command, args []string, out []byte) {
	if i := slices.Index(args, "--"); !slices.Contains(args, "--json") || i >= 0 && slices.Index(args, "--json") > i {
		return
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var v any
		if d.Decode(&v) != nil {
			return
		}
		if c, _, err := root.Find(args); err == nil {
			ts.Value(printedJSON{}).(map[string]bool)[c.CommandPath()] = true
		}
		if errs := formErrors(v, ""); len(errs) > 0 {
			ts.Fatalf("muster %s: %v", strings.Join(args, " "), errors.Join(errs...))
		}
	}
}

// allPrintJSON is "allprintjson": each command has printed JSON in this script, or has a reason not to.
func allPrintJSON(ts *testscript.TestScript, _ bool, _ []string) {
	printed := ts.Value(printedJSON{}).(map[string]bool)
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		path := c.CommandPath()
		if !printed[path] && noJSON[path] == "" {
			ts.Fatalf("%s has printed no JSON: run it with --json in this script", path)
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				check(sub)
			}
		}
	}
	check((&App{}).root())
}

// The check of the form finds what it is to find.
func TestFormErrors(t *testing.T) {
	for _, wrong := range []string{`{"dependsOn":[]}`, `[{"a":{"claimed_at":1714567890.1}}]`, `{"ts":12}`, `{"at":"4f2a9c"}`,
		`{"deadline":""}`, `{"x":1795251699.9}`, `{"timeout":60}`, `{"a-b":1}`, `{"since":"2026-12-01 10:00"}`} {
		var v any
		if err := json.Unmarshal([]byte(wrong), &v); err != nil || len(formErrors(v, "")) != 1 {
			t.Errorf("%s: %v, %v", wrong, err, formErrors(v, ""))
		}
	}
	var v any
	if err := json.Unmarshal([]byte(`{"blockedBy":[1],"at":"2026-12-01T05:13:04.968497Z","timeout_seconds":3,"timeout":"10m",`+
		`"members":{"Ann-B":{"calls":1}},"idle_reason":"awaiting_tasks","ended_at":null}`), &v); err != nil || len(formErrors(v, "")) > 0 {
		t.Error(err, formErrors(v, ""))
	}
}
