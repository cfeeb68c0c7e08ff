// Package scripts has what all scripts of testscript share: the machine of an ordinary developer, conditions, and
// commands. The process has the environment of gittest.Main.
package scripts

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/internal/testing/gittest"
	"muster/internal/testing/tier"
)

// Setup gives a script the home of an ordinary developer (see gittest.Home), and settings of git from nowhere else.
func Setup(e *testscript.Env) error {
	home := filepath.Join(e.WorkDir, "home")
	for k, v := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home + "/config", "XDG_STATE_HOME": "", "TZ": "UTC",
		"GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": e.WorkDir,
		"MUSTER_SANDBOX_ENABLED": "false", // except in the scripts that are about it
	} {
		e.Setenv(k, v)
	}
	return gittest.Home(home)
}

// Condition is "all": everything runs, and not the first tier only; or "bubblewrap": it works here, or must work,
// because ./test.sh all and CI leave nothing out.
func Condition(name string) (bool, error) {
	switch name {
	case "all":
		return tier.IsAll(), nil
	case "bubblewrap":
		err := exec.Command("bwrap", "--unshare-user", "--ro-bind", "/", "/", "true").Run()
		return err == nil || tier.LeavesNothingOut(), nil
	}
	return false, fmt.Errorf("there is no condition %q", name)
}

// Repo DIR makes a repository, below $WORK where DIR is relative, with one commit on the branch main and goes there.
// All of them have the same commit.
func Repo(ts *testscript.TestScript, _ bool, args []string) {
	dir := args[0]
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(ts.Getenv("WORK"), dir)
	}
	ts.Check(gittest.CopyRepo(dir, nil))
	ts.Check(ts.Chdir(dir))
}

// Exits CODE PROGRAM ARGS... checks a program's exit code; stdout and stderr are kept as exec keeps them.
func Exits(ts *testscript.TestScript, _ bool, args []string) {
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		if _, e := fmt.Sscanf(err.Error(), "exit status %d", &code); e != nil {
			ts.Fatalf("%v", err)
		}
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// Contains FILE TEXT... checks that a file has each of the texts, as they are.
func Contains(ts *testscript.TestScript, neg bool, args []string) {
	data := ts.ReadFile(args[0])
	for _, want := range args[1:] {
		if strings.Contains(data, want) == neg {
			ts.Fatalf("%s has it: %v, %q\n%s", args[0], !neg, want, data)
		}
	}
}
