//go:build failpoint

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/internal/proc"
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	testscript.Main(m, map[string]func(){"muster-torture": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			for k, v := range map[string]string{
				"HOME": e.WorkDir + "/home", "XDG_CONFIG_HOME": e.WorkDir + "/home/config", "TZ": "UTC",
				"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CEILING_DIRECTORIES": e.WorkDir,
				"GORACE": "atexit_sleep_ms=0", // with -race every program would sleep for a second at its end
			} {
				e.Setenv(k, v)
			}
			return os.MkdirAll(filepath.Join(e.WorkDir, "home"), 0o700)
		},
		RequireExplicitExec: true,
	})
}
