//go:build linux

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The ordinary runs: what a person asks for on most days, by scripts that do what models do. They are counted, not timed.

// aBug is a fix in a repository of 150 files by the lead alone: look around, read, see the test fail, mend, see it pass.
const aBug = `
speakers:
  lead:
    - do: [{bash: {command: "git log --oneline | head -5; ls"}}, {grep: {pattern: "def total", path: "."}}]
    - do: [{read_file: {path: shop/cart.py}}, {read_file: {path: tests/test_cart.py}}]
    - do: [{bash: {command: "python3 -m unittest -q tests.test_cart 2>&1 | tail -20"}}]
    - do: [{edit_file: {path: shop/cart.py, old: "price * (count - 1)", new: "price * count"}}]
    - do: [{bash: {command: "python3 -m unittest -q 2>&1 | tail -5"}}]
    - do: [{complete_task: {summary: "The total of a cart counts the last piece of each article. python3 -m unittest: ok."}}]
    - say: The total of a cart left out one piece of each article. It is mended and landed.
`

// delegated is the same by a teammate.
const delegated = `
speakers:
  lead:
    - do: [{bash: {command: "git log --oneline | head -5; ls"}}, {grep: {pattern: "def total", path: "."}}]
    - do:
        - task_create: {subject: mend the total of a cart, description: "shop/cart.py leaves out one piece of each article. Proof: python3 -m unittest."}
        - spawn_teammate: {name: amy, role: coder, prompt: Mend the bug.}
    - do: [{wait: {}}]
      until: All done
    - say: It is mended and landed.
  amy:
    - do: [{read_file: {path: shop/cart.py}}, {read_file: {path: tests/test_cart.py}}]
    - do: [{bash: {command: "python3 -m unittest -q tests.test_cart 2>&1 | tail -20"}}]
    - do: [{edit_file: {path: shop/cart.py, old: "price * (count - 1)", new: "price * count"}}]
    - do: [{bash: {command: "python3 -m unittest -q 2>&1 | tail -5"}}]
    - do: [{complete_task: {summary: "The total counts the last piece of each article. python3 -m unittest: ok."}}]
`

// contract is an interface that comes first, and four parts that use it.
var contract = func() string {
	names, words := []string{"amy", "ben", "cleo", "dan"}, `
speakers:
  lead:
    - do: [{bash: {command: "git log --oneline | head -5; ls shop"}}, {read_file: {path: shop/cart.py}}]
    - do:
        - task_create: {subject: the interface, description: "shop/price.py has the class Price with net and gross. Proof: python3 -m unittest."}
`
	for _, who := range names {
		words += fmt.Sprintf("        - task_create: {subject: %[1]s, description: 'shop/%[1]s.py uses Price. Proof: python3 -m unittest.', blocked_by: [the interface]}\n"+
			"        - spawn_teammate: {name: %[1]s, role: coder, prompt: Take a task.}\n", who)
	}
	words += "    - do: [{wait: {}}]\n      until: All done\n    - say: All five have landed.\nscenes:\n"
	for _, task := range append([]string{"the interface"}, names...) {
		file := strings.ReplaceAll(strings.TrimPrefix(task, "the inter"), "face", "price")
		words += fmt.Sprintf(`  - cue: 'Task #(?P<id>\d+): %s\n'
    turns:
      - do: [{read_file: {path: shop/cart.py}}]
      - do: [{write_file: {path: shop/%[2]s.py, content: "class Price:\n    net = gross = 0\n"}}]
      - do: [{bash: {command: "python3 -m unittest -q 2>&1 | tail -5"}}]
      - do: [{complete_task: {summary: "shop/%[2]s.py is made. python3 -m unittest: ok."}}]
`, task, file)
	}
	return words
}()

// packages is a change of the same kind in 60 files, by one script.
const packages = `
speakers:
  lead:
    - do: [{bash: {command: "ls shop | head -3"}}, {read_file: {path: shop/part1/module12.py}}]
    - do: [{bash: {command: "for f in $(ls shop/*/*.py | head -60); do sed -i 's/a part of the shop/a module of the shop/' $f; done; git diff --stat | tail -1"}}]
    - do: [{bash: {command: "python3 -m unittest -q tests.helper 2>&1 | tail -5; true"}}]
    - do: [{complete_task: {summary: "60 modules name themselves modules."}}]
    - say: All 60 are changed.
`

// shop is a repository of some 150 Python files with a bug.
func shop(tb testing.TB) *world {
	w := newWorld(tb, 1)
	write := func(path, text string) {
		path = filepath.Join(w.root, path)
		must(tb, os.MkdirAll(filepath.Dir(path), 0o755))
		must(tb, os.WriteFile(path, []byte(text), 0o644))
	}
	module := func(name string, lines int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "\"\"\"%s: a part of the shop.\"\"\"\n\n", name)
		for i := range lines {
			fmt.Fprintf(&b, "def %s_%d(value):\n    \"\"\"Returns the value of step %d.\"\"\"\n    return value + %d\n\n", name, i, i, i)
		}
		return b.String()
	}
	for i := range 145 {
		write(fmt.Sprintf("shop/part%d/module%d.py", i/12, i), module(fmt.Sprintf("module%d", i), 20))
	}
	write("shop/__init__.py", "")
	write("tests/__init__.py", "")
	write("README.md", "# Shop\n\nRun the tests: python3 -m unittest\n")
	write("shop/cart.py", module("cart", 25)+"\ndef total(cart):\n    return sum(price * (count - 1) for price, count in cart)\n")
	write("tests/test_cart.py", "import unittest\n\nfrom shop.cart import total\n\n\nclass TestCart(unittest.TestCase):\n"+
		"    def test_total(self):\n        self.assertEqual(total([(3, 2), (5, 1)]), 11)\n\n\n"+module("helper", 10))
	write(".gitignore", "__pycache__/\n")
	w.commitAll()
	return w
}

// traffic is how often a run asked, and the bytes of the requests' bodies.
func (s *server) traffic(members ...string) (requests int, kilobytes float64) {
	for _, who := range members {
		for _, v := range s.visits(who) {
			requests, kilobytes = requests+1, kilobytes+float64(v.bytes)/1000
		}
	}
	return requests, kilobytes
}

// BenchmarkOrdinary counts the requests of ordinary runs.
func BenchmarkOrdinary(b *testing.B) {
	const bug, check = "The total of a cart is too small. Mend it.", "python3 -m unittest -q"
	for _, c := range []struct {
		name, what, words, goal string
		args                    []string
		members                 []string
		landed                  int
		requests, size          float64 // at most
		bare                    float64 // requests of a bare agent; 0 where it has none to compare
	}{
		{"bug", "one bug in 150 files, the lead alone", aBug, bug, []string{"--check", check}, []string{"lead"}, 1, 7, 110, 6},
		{"chat", "the same over Chat Completions", aBug, bug, []string{"--check", check, "--model", "openai/m@URL/v1"}, []string{"lead"}, 1, 7, 120, 6},
		{"delegated", "the same by a teammate", delegated, bug, []string{"--check", check}, []string{"lead", "amy"}, 1, 11, 170, 6},
		{"contract", "an interface first, then four parts by four teammates", contract, "Give prices a class, and use it in four places.", nil,
			[]string{"lead", "amy", "ben", "cleo", "dan"}, 5, 36, 500, 0},
		{"packages", "60 packages changed by one script", packages, "Call all parts of the shop modules.", nil, []string{"lead"}, 1, 7, 110, 0},
	} {
		w := shop(b)
		s := serve(b, c.words)
		for i := range c.args {
			c.args[i] = strings.ReplaceAll(c.args[i], "URL", s.url)
		}
		cmd := w.command(muster, append([]string{"run", c.goal}, c.args...)...)
		cmd.Env = append(cmd.Env, s.env()...)
		out := w.output(cmd)
		if !strings.Contains(out, fmt.Sprintf("%[1]d of %[1]d task", c.landed)) {
			b.Fatalf("%s: %s", c.name, out)
		}
		requests, size := s.traffic(c.members...)
		r := figure{what: c.what, unit: "requests", ours: float64(requests), limit: c.requests}
		if c.bare > 0 {
			r.beside, r.is = c.bare, "bare"
		}
		report(b, c.name+"-requests", r)
		report(b, c.name+"-size", figure{what: c.what + ", bodies of the requests", unit: "KB", ours: size, limit: c.size})
		if c.name == "bug" {
			report(b, "alone-first", figure{what: "first request of a lead alone", unit: "KB", ours: float64(s.visits("lead")[0].bytes) / 1000, limit: 9})
		}
	}
	w := newWorld(b, 1)
	w.board(2)
	s := serve(b, "speakers:\n  lead:\n    - say: Later.\n    - say: Later.\n")
	cmd := w.command(muster, "run", bug)
	cmd.Env = append(cmd.Env, s.env()...)
	_ = cmd.Run() // the tasks are left
	report(b, "team-first", figure{what: "first request of a lead with a team", unit: "KB", ours: float64(s.visits("lead")[0].bytes) / 1000, limit: 14})
}
