package chat

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"time"

	"muster/internal/durable"
)

// kept is how many lines of the history are remembered.
const kept = 500

// History is what the user typed, oldest first, one JSON string a line in a file.
type History struct {
	path, lock string
	files      *durable.Files
}

// OpenHistory is the history in the file at path, which need not be there; lock is its lock file.
func OpenHistory(path, lock string, files *durable.Files) *History {
	return &History{path, lock, files}
}

// Lines are the last lines; what cannot be read is left out.
func (h *History) Lines() (lines []string) {
	data, err := os.ReadFile(h.path)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		var text string
		if json.Unmarshal([]byte(line), &text) == nil && text != "" {
			lines = append(lines, text)
		}
	}
	return lines[max(0, len(lines)-kept):]
}

// Add remembers a line. That it cannot is no reason to stop talking.
func (h *History) Add(text string) {
	line, err := json.Marshal(text)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	unlock, err := h.files.Lock(ctx, h.lock)
	if err != nil {
		return
	}
	defer unlock()
	_, _ = h.files.Append(h.path, line)
}
