package workspace

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"muster"
	"muster/internal/corruption"
	"muster/journal"
)

// reportOverwritten keeps what another program wrote and the store has overwritten, and reports it by an event. What
// fails is left: the change is undone already.
func (w *Workspace) reportOverwritten(table, file string, found muster.Doc) {
	ctx := context.Background() // whoever found the change may be at its end
	text := fmt.Sprintf("another program removed %s while the team works: muster has put it back", file)
	if found.Data != nil {
		text = fmt.Sprintf("another program changed %s while the team works: muster has put its own version back", file)
		why := errors.New("another program wrote it")
		if key, err := corruption.Keep(ctx, w.store.Table(corruption.Table), table, found, why); err == nil {
			text += fmt.Sprintf("; the other one is .team/%s/%s.json", corruption.Table, key)
		}
	}
	e := muster.Event{Kind: journal.StateForeign, Fields: map[string]any{"text": text, "file": file}}
	if id, err := strconv.Atoi(found.Key); err == nil && table == muster.TableTasks {
		e.Task = muster.TaskID(id)
	}
	_ = w.journal.Emit(ctx, e)
}
