//go:build unix

package code

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/proc"
	"muster/internal/testing/tier"
)

// After an edit the model reads the new errors of syntax of a Python and a JavaScript file, and only those.
func TestSyntaxByPrograms(t *testing.T) {
	tier.Needs(t, "python3")
	tier.Needs(t, "node")
	t.Parallel()
	k := newKit(t)
	for i, c := range []struct{ name, before, after, want string }{
		{"a.py", "x = 1\n", "x = (1\ny = 2\n", "\nline 1: '(' was never closed (python3)]"},
		{"a.py", "x = 1\n", "return 1\n", "\nline 1: 'return' outside function (python3)]"},
		{"a.py", "x = 1\n", "import nothing_of_this_name\nraise SystemExit(3)\n", ""},
		{"a.py", "x = (\n", "x = ((\n", ""},
		{"a.py", "x = 1\n", "x = '\\d'\nassert (x, 'y')\n", ""}, // warnings only
		{"a.py", "", "# coding: no-such\nx = 1\n", "line "},
		{"A.PY", "", "x = = 1\n", "line 1: invalid syntax (python3)]"},
		{"a.js", "", "const a = require('b');\nreturn;\n", ""},
		{"a.js", "", "import a from 'b';\nexport default await a();\n", ""},
		{"a.js", "", "import a from 'b';\n\nconst c = ;\n", "\nline 3: Unexpected token ';' (node)]"},
		{"a.js", "f(;\n", "f(;;\n", ""},
		{"a.js", "", "export const A = () => <div>x</div>;\n", ""},
		{"a.js", "", "#!/usr/bin/env node\nprocess.exit(1);\n", ""},
		{"a.mjs", "", "f();\nreturn;\n", "\nline 2: Illegal return statement (node)]"},
		{"a.cjs", "", "import a from 'b';\n", "line 1: Cannot use import statement outside a module (node)]"},
		{"a.ts", "", "const a: = 1;\n", ""},
	} {
		os.Remove(filepath.Join(k.dir, c.name))
		if c.before != "" {
			k.show(c.name, c.before)
		}
		_, got, _ := strings.Cut(k.ok("write_file", in{"path": c.name, "content": c.after}), ".\n[")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("case %d, %s, %q: %q, want %q", i, c.name, c.after, got, c.want)
		}
	}
	k.put("e.py", "x = 1\n")
	same(t, "edit_file", k.ok("edit_file", in{"path": "e.py", "old_text": "x = 1", "new_text": "x = ="}),
		"Edited e.py:\n1\tx = =\n\n[e.py has errors of syntax since this change:\nline 1: invalid syntax (python3)]\n")
	left, err := os.ReadDir(k.dir)
	if err != nil || len(left) != 7 {
		t.Errorf("the check has left something: %v, %v", left, err)
	}
}

// Nothing that a repository holds is run by a check, and no setting in it changes what a check does.
func TestSyntaxInHostileRepositories(t *testing.T) {
	tier.Needs(t, "python3")
	tier.Needs(t, "node")
	t.Parallel()
	k := newKit(t)
	witness := filepath.Join(filepath.Dir(k.dir), "witness")
	python := fmt.Sprintf("open(%q, 'a').write('python\\n')\n", witness)
	script := fmt.Sprintf("require('fs').appendFileSync(%q, 'node\\n')\n", witness)
	for _, name := range []string{"sitecustomize.py", "usercustomize.py", "sys.py", "encodings/__init__.py", "ast.py", "site.py",
		"lib/python/sitecustomize.py", "startup.py"} {
		k.put(name, python)
	}
	k.put("evil.pth", "import os; "+python)
	k.put("pyvenv.cfg", "home = "+k.dir+"\n")
	k.put(".python-version", "evil\n")
	k.put("evil.js", script)
	k.put("index.js", script)
	k.put("package.json", `{"type": "module", "main": "evil.js", "scripts": {"postinstall": "node evil.js"}}`)
	k.put("node_modules/fs/index.js", script)
	k.put(".noderc", "--require ./evil.js\n")
	for _, p := range []string{"python3", "node", "bash", "pyenv"} {
		k.put("bin/"+p, fmt.Sprintf("#!/bin/sh\necho %s >> %s\n", p, witness))
		if err := os.Chmod(filepath.Join(k.dir, "bin", p), 0o700); err != nil { //nolint:gosec // A program.
			t.Fatal(err)
		}
	}
	env := proc.Environment(os.Environ(), nil)
	at := func(name string) string { return filepath.Join(k.dir, name) }
	env = append(env, "NODE_OPTIONS=--require "+at("evil.js"), "NODE_PATH="+at("node_modules"), "NODE_V8_COVERAGE="+at("coverage"),
		"PYTHONPATH="+k.dir, "PYTHONSTARTUP="+at("startup.py"), "PYTHONUSERBASE="+k.dir, "PYTHONINSPECT=1",
		"PYTHONPYCACHEPREFIX="+at("cache"), "PATH="+at("bin")+":.:bin:"+os.Getenv("PATH"))
	before := k.files()
	for _, launcher := range []proc.Launcher{k.jobs.launcher, nil} {
		k.tools = Tools(k.place, launcher, k.jobs, Options{Environ: env, Outputs: k.place.ReadOnly[0], Root: k.dir})
		for name, content := range map[string]string{"x.py": "import sys, site, ast\nx = (\n", "x.js": "import 'fs';\nf(;\n",
			"y.py": python, "y.js": script, "z.mjs": "import './evil.js';\n"} {
			said := k.ok("write_file", in{"path": name, "content": content})
			if isBroken := name[0] == 'x'; strings.Contains(said, "errors of syntax") != (isBroken && launcher != nil) {
				t.Errorf("%s: the model reads %q", name, said)
			}
			os.Remove(at(name))
		}
	}
	if said, err := os.ReadFile(witness); err == nil {
		t.Errorf("something of the repository was run:\n%s", said)
	}
	if after := k.files(); len(after) != len(before) {
		t.Errorf("the repository has %d files, and had %d", len(after), len(before))
	}
}

// A program that is missing, or says what is not understood, or does not end, says nothing.
func TestSyntaxByBadPrograms(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	bin := t.TempDir()
	for name, body := range map[string]string{
		"missing": "", "fails": "exit 1", "garbage": "head -c 3000000 /dev/zero; exit 3", "words": "echo no number; exit 3",
		"control": `printf '1 \033[31mred\nblue'; exit 3`, "hangs": "exec sleep 600",
		"directory": `printf '1 %s' "$(pwd)"; exit 3`,
	} {
		os.Remove(filepath.Join(bin, "python3"))
		if body != "" {
			if err := os.WriteFile(filepath.Join(bin, "python3"), []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil { //nolint:gosec // A program.
				t.Fatal(err)
			}
		}
		path := bin + ":/usr/bin:/bin"
		if body == "" {
			path = bin
		}
		k.tools = Tools(k.place, k.jobs.launcher, k.jobs, Options{Environ: []string{"PATH=" + path}})
		if name == "hangs" && !tier.IsAll() {
			continue // it takes as long as a check may
		}
		said := k.ok("write_file", in{"path": name + ".py", "content": "x = (\n"})
		want := fmt.Sprintf("Made %s.py: 1 line.", name)
		if shown := map[string]string{"control": "[31mred", "directory": "/"}[name]; shown != "" {
			want += fmt.Sprintf("\n[%s.py has errors of syntax since this change:\nline 1: %s (python3)]\n", name, shown)
		}
		same(t, name, said, want)
	}
}
