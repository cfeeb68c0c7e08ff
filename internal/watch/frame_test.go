package watch

import (
	"context"
	"fmt"
	"testing"

	tea "charm.land/bubbletea/v2"

	"muster"
	"muster/internal/view"
)

// BenchmarkFrame draws a team of 30 members and 1,000 tasks after a key.
func BenchmarkFrame(b *testing.B) {
	m := newModel(true, muster.Time(5000))
	o := big()
	m.Update(tea.WindowSizeMsg{Width: 200, Height: 60})
	m.ask = func(func(context.Context, teamAPI) tea.Msg) tea.Cmd { return nil }
	b.Run("key", func(b *testing.B) {
		m.apply(changedMsg{overview: o})
		for b.Loop() {
			m.Update(tea.KeyPressMsg{Code: tea.KeyDown})
			m.View()
		}
	})
}

// big is an overview of 30 members and 1,000 tasks.
func big() view.Overview {
	o := overview()
	o.Tasks, o.Members = nil, nil
	for i := range 1000 {
		t := muster.Task{ID: muster.TaskID(i + 1), Subject: fmt.Sprintf("a subject of some length, number %d", i), Status: muster.Pending}
		if i > 0 {
			t.DependsOn, t.BlockedBy = []muster.TaskID{muster.TaskID(i)}, []muster.TaskID{muster.TaskID(i)}
		}
		o.Tasks = append(o.Tasks, t)
	}
	for i := range 30 {
		o.Members = append(o.Members, view.Member{Alive: true, Member: muster.Member{Name: muster.Name(fmt.Sprintf("member-%d", i)),
			Role: "coder", Status: muster.Working, Task: muster.TaskID(i + 1), Since: 4000}})
	}
	return o
}
