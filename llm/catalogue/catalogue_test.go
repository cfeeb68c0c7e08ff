package catalogue_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"muster/llm"
	"muster/llm/catalogue"
)

func Example() {
	m, ok := catalogue.Lookup("anthropic", "claude-haiku-4-5-20251001")
	fmt.Println(ok, m.Window, m.MaxOutput, m.Thinking.Style)
	// Output: true 200000 64000 budget
}

func TestEntries(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range catalogue.All() {
		name := m.Provider + "/" + m.Name
		if seen[name] || m.Source == "" || m.Date == "" || m.Window < 0 || m.Window > 0 && m.MaxOutput > m.Window {
			t.Errorf("%s: %+v", name, m)
		}
		seen[name] = true
		if found, ok := catalogue.Lookup(m.Provider, m.Name); !ok || found.Source != m.Source {
			t.Errorf("%s is not found", name)
		}
		for i, p := range m.Prices {
			if p.Input <= 0 || p.Output <= 0 || p.CacheRead > p.Input || i > 0 && p == m.Prices[i-1] {
				t.Errorf("%s: price %+v", name, p)
			}
		}
		if s := m.Thinking.Style; (s == catalogue.Adaptive || s == catalogue.Effort) && m.Thinking.Level("medium") == "" {
			t.Errorf("%s has no level of effort", name)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, c := range []struct {
		provider, name string
		window         int // 0: it is not known
	}{
		{"openai", "gpt-6-sol", 1050000},
		{"openai", "gpt-5.5-2026-04-23", 1050000},
		{"anthropic", "Claude-Opus-5", 1000000},
		{"openrouter", "anthropic/claude-haiku-4-5:beta", 200000},
		{"openrouter", "google/gemini-4-argon", 1048576},
		{"openrouter", "deepseek/deepseek-flash", 1000000},
		{"openai", "deepseek-flash", 0}, // the same name at another endpoint may be another model
		{"openai", "qwen3", 0},
		{"openrouter", "auto", 0},
		{"", "", 0},
	} {
		m, ok := catalogue.Lookup(c.provider, c.name)
		if ok != (c.window > 0) || m.Window != c.window {
			t.Errorf("Lookup(%q, %q) = %+v, %v", c.provider, c.name, m, ok)
		}
	}
}

func TestLevel(t *testing.T) {
	for _, c := range []struct{ provider, name, effort, want string }{
		{"openai", "gpt-6-sol", "high", "high"},
		{"openai", "gpt-6-sol", "minimal", "low"},
		{"deepseek", "deepseek-flash", "medium", "high"}, // low|high|max
		{"zai", "glm-5.2", "low", "high"},                // high|max
		{"gemini", "gemini-4-argon", "max", "high"},
		{"anthropic", "claude-haiku-4-5", "high", ""},
		{"openai", "gpt-6-sol", "loud", ""},
	} {
		m, _ := catalogue.Lookup(c.provider, c.name)
		if got := m.Thinking.Level(c.effort); got != c.want {
			t.Errorf("%s at effort %s: %q, want %q", c.name, c.effort, got, c.want)
		}
	}
}

func TestCost(t *testing.T) {
	day := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	million := llm.Usage{Input: 1e6, Output: 1e6}
	for _, c := range []struct {
		provider, name string
		usage          llm.Usage
		at             time.Time
		want           float64
	}{
		{"openai", "gpt-6-sol", llm.Usage{Input: 100_000, Output: 10_000}, day, 0.3},
		{"openai", "gpt-6-sol", million, day, 4 + 15}, // above 272,000
		{"openai", "gpt-6-sol", llm.Usage{Input: 200_000, CacheRead: 100_000}, day, 0.2*4 + 0.1*0.4},
		{"anthropic", "claude-haiku-5-5", llm.Usage{CacheRead: 50_000}, day, 0.005},     // no price of a cache: input
		{"anthropic", "claude-haiku-5-5", llm.Usage{CacheWriteLong: 50_000}, day, 0.01}, // for an hour: twice the input
		{"gemini", "gemini-4-argon", million, day, 12},
		{"gemini", "gemini-4-argon", million, day.AddDate(0, 0, 11), 24}, // from December on
		{"deepseek", "deepseek-flash", million, day, 1.5},                // it may be a peak hour
	} {
		m, _ := catalogue.Lookup(c.provider, c.name)
		if got, ok := m.Cost(c.usage, c.at); !ok || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s %+v: %v dollars, %v, want %v", c.name, c.usage, got, ok, c.want)
		}
	}
	if _, ok := (catalogue.Model{}).Cost(million, day); ok {
		t.Error("an unknown model has a price")
	}
}
