package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
)

// inline returns the page as one document with data in it, which needs no other file: a style, a script and the data.
// kind is the type of the data, which must not end its element: no "<" may stand in it.
//
// The document may load nothing, connect to nothing and run nothing but this one script.
func inline(kind string, data []byte) ([]byte, error) {
	script, err := bundle()
	if err != nil {
		return nil, err
	}
	style, icon := static("style.css"), static("icon.svg")
	policy := fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; "+
		"form-action 'none'", hashOf(script), hashOf(style))
	page := string(loaded.ReplaceAll(static("index.html"), nil))
	for _, x := range []struct{ tag, inline string }{
		{`<meta charset="utf-8">`, `<meta charset="utf-8">` + "\n" +
			`<meta http-equiv="Content-Security-Policy" content="` + html.EscapeString(policy) + `">`},
		{`<link rel="icon" href="icon.svg">`, `<link rel="icon" href="data:image/svg+xml;base64,` +
			base64.StdEncoding.EncodeToString(icon) + `">`},
		{`<link rel="stylesheet" href="style.css">`, "<style>" + string(style) + "</style>"},
		{`<script type="module" src="app.js"></script>`, ""},
		// The data comes before the script, and the script after all that it looks for.
		{"</body>", `<script type="` + kind + `" id="shared">`},
	} {
		before, after, ok := strings.Cut(page, x.tag)
		if !ok {
			return nil, fmt.Errorf("index.html has no %s", x.tag)
		}
		if x.tag == "</body>" {
			// Data may be large: it is not copied for each of the other parts.
			return slices.Concat([]byte(before), []byte(x.inline), data, []byte("</script>\n<script type=\"module\">"),
				script, []byte("</script>\n</body>"), []byte(after)), nil
		}
		page = before + x.inline + after
	}
	return nil, nil // never: the last part returns
}

// loaded are the lines of index.html that ask for files early.
var loaded = regexp.MustCompile(`(?m)^(<!-- All is asked .* -->|<link rel="(module)?preload".*>)\n`)

// hashOf returns the name of a script or a style in a policy.
func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// static returns a file of the page.
func static(name string) []byte {
	data, err := files.ReadFile("static/" + name)
	if err != nil {
		panic(err) // the file is not in the program
	}
	return data
}

// What modules of the page import and export: whole lines, each at the beginning of one.
var (
	importNames = regexp.MustCompile(`(?m)^import (\{[^}]*\}) from "\./(\w+\.js)";$`)
	importAll   = regexp.MustCompile(`(?m)^import \* as (\w+) from "\./(\w+\.js)";$`)
	exported    = regexp.MustCompile(`(?m)^export ((?:async )?function|const) (\w+)`)
	leftOver    = regexp.MustCompile(`(?m)^(?:import|export)\b.*$|</script|<!--`)
)

// bundle returns all modules of the page as one script: a browser loads no modules from the disk. Each becomes a
// function that returns what it exports. Exports are functions and constants, so a copy of a value is the value.
func bundle() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("const modules = {};\n")
	done := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		if done[name] {
			return nil
		}
		done[name] = true
		source := static(name)
		for _, re := range []*regexp.Regexp{importNames, importAll} {
			for _, m := range re.FindAllSubmatch(source, -1) {
				if err := add(string(m[2])); err != nil {
					return err
				}
			}
		}
		var names []string
		for _, m := range exported.FindAllSubmatch(source, -1) {
			names = append(names, string(m[2]))
		}
		source = importNames.ReplaceAll(source, []byte(`const $1 = modules["$2"];`))
		source = importAll.ReplaceAll(source, []byte(`const $1 = modules["$2"];`))
		source = exported.ReplaceAll(source, []byte(`$1 $2`))
		if found := leftOver.Find(source); found != nil {
			return fmt.Errorf("%s cannot be put into a page: %s", name, found)
		}
		fmt.Fprintf(&out, "modules[%q] = (() => {\n%sreturn { %s };\n})();\n", name, source, strings.Join(names, ", "))
		return nil
	}
	err := add("app.js")
	return out.Bytes(), err
}
