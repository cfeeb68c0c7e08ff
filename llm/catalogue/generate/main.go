// Command generate makes models.json of models.csv, which people and sources write, and of tiers.csv, which has the
// prices that hold only above a size or from a date on. Run it by go generate ./llm/catalogue.
package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"muster/llm/catalogue"
)

func main() {
	data, err := generate(".")
	if err == nil {
		err = os.WriteFile("models.json", data, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// row is a line of a table, by the names of its columns.
type row map[string]string

// number returns a column as a number, 0 where it is empty. What is none stops the program.
func (r row) number(column string) float64 {
	if r[column] == "" {
		return 0
	}
	n, err := strconv.ParseFloat(r[column], 64)
	if err != nil {
		panic(fmt.Sprintf("%v: %s: %v", r, column, err))
	}
	return n
}

// read reads a table with a head.
func read(name string) ([]row, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, line := range lines[1:] {
		r := row{}
		for i, column := range lines[0] {
			r[column] = line[i]
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// endpoints are the names of endpoints that differ from those of the table.
var endpoints = map[string]string{"google": "gemini", "moonshotai": "moonshot", "alibaba": "qwen"}

// generate returns models.json, of the tables in dir.
func generate(dir string) ([]byte, error) {
	rows, err := read(path.Join(dir, "models.csv"))
	if err != nil {
		return nil, err
	}
	tiers, err := read(path.Join(dir, "tiers.csv"))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("[\n")
	for i, r := range rows {
		m := catalogue.Model{Provider: r["provider"], Name: r["model"], Window: int(r.number("context")),
			MaxOutput: int(r.number("max_output")), Images: r["images"] == "yes",
			Thinking: thinking(r["provider"], r["thinking_style"]), Source: r["source_repo_path"], Date: r["date"]}
		if name := endpoints[m.Provider]; name != "" {
			m.Provider = name
		}
		if r["input_usd_per_mtok"] != "" {
			m.Prices = prices(m, r, tiers)
		}
		data, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		b.Write(data)
		if i < len(rows)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	return b.Bytes(), nil
}

// prices returns the price of a row and those of its tiers.
func prices(m catalogue.Model, r row, tiers []row) []catalogue.Price {
	base := catalogue.Price{Input: r.number("input_usd_per_mtok"), Output: r.number("output"),
		CacheRead: r.number("cache_read"), CacheWrite: r.number("cache_write")}
	all := []catalogue.Price{base}
	for _, t := range tiers {
		if is, err := path.Match(t["models"], m.Name); err != nil || !is || t["provider"] != m.Provider {
			continue
		}
		in, out := t.number("input"), t.number("output")
		all = append(all, catalogue.Price{From: t["from"], Above: int(t.number("above")), When: t["when"],
			Input: base.Input * in, Output: base.Output * out, CacheRead: base.CacheRead * in,
			CacheWrite: base.CacheWrite * in})
	}
	return all
}

// effortList matches the levels in a description of thinking: low|medium|high.
var effortList = regexp.MustCompile(`\b(?:none|minimal|low|medium|high)(?:\|(?:minimal|low|medium|high|xhigh|max))+`)

// thinking reads a description of thinking, which people have written.
func thinking(provider, text string) (t catalogue.Thinking) {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	for _, e := range strings.Split(effortList.FindString(text), "|") {
		if e != "" && e != "none" {
			t.Efforts = append(t.Efforts, e)
		}
	}
	t.Always = has("always-on", "cannot be disabled", "disabled rejected", "none rejected")
	t.Replay = has("replay reasoning_content")
	switch {
	case text == "" || text == "none":
	case provider == "anthropic" && has("adaptive", "effort"):
		t.Style = catalogue.Adaptive
		if len(t.Efforts) == 0 {
			t.Efforts = []string{"low", "medium", "high"}
		}
	case provider == "anthropic" || has("toggle + budget_tokens"):
		t.Style = catalogue.Budget
	case has("toggle", "enabled|disabled", "on/off"):
		t.Style = catalogue.Toggle
	case has("effort", "thinking_level", "budget_tokens"):
		t.Style = catalogue.Effort
		if len(t.Efforts) == 0 { // the levels are not known: these every server has
			t.Efforts = []string{"low", "medium", "high"}
		}
	default:
		t.Style = catalogue.Fixed
	}
	return t
}
