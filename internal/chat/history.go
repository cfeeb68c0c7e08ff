package chat

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"muster/internal/durable"
	"muster/internal/paths"
)

// maxHistoryLines is how many lines of the history are read.
const maxHistoryLines = 500

// History is what the user typed, oldest first. Its file holds one JSON string per line.
type History struct {
	path, lock string
	files      *durable.Files
}

// OpenHistory returns the history of the team whose state is in dir. Its file need not exist. Its lock lets several
// conversations write to it.
func OpenHistory(dir paths.Dir) *History {
	return &History{filepath.Join(dir.Team(), "typed.jsonl"), filepath.Join(dir.Locks(), "typed.lock"),
		durable.New(durable.OS{Root: string(dir)})}
}

// Lines returns the last lines. Lines that cannot be read are left out.
func (h *History) Lines() (lines []string) {
	data, _, err := h.files.ReadFile(h.path)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		var text string
		if json.Unmarshal([]byte(line), &text) == nil && text != "" {
			lines = append(lines, text)
		}
	}
	return lines[max(0, len(lines)-maxHistoryLines):]
}

// Add appends a line. Failing to do so is no reason to stop the conversation, so it reports no error.
func (h *History) Add(ctx context.Context, text string) {
	line, _ := json.Marshal(text) // a string can always be encoded
	// Another conversation may hold the lock, and the user must not wait for it.
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	unlock, err := h.files.Lock(ctx, h.lock)
	if err != nil {
		return
	}
	defer unlock()
	_, _ = h.files.Append(h.path, line)
}
