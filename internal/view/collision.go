package view

import (
	"encoding/json"
	"fmt"
	"strings"

	"muster"
	"muster/internal/text"
)

// maxCollidingFiles is how many files a line about a collision names.
const maxCollidingFiles = 3

// collisionOf returns the collision that an event tells of. The types of the fields are others in an event that was
// read from the journal than in one of this process.
func collisionOf(e muster.Event) (c muster.Collision) {
	if data, err := muster.MarshalLine(e.Fields); err == nil {
		_ = json.Unmarshal(data, &c) // a field that cannot be read is left out
	}
	c.Task, c.Owner = e.Task, e.Member
	return c
}

// CollisionText says in a line who collides with whom, and where.
func CollisionText(c muster.Collision) string {
	return fmt.Sprintf("%d collides with %s in %s", c.Task, collidesWith(c), CollidingFiles(c.Files, maxCollidingFiles))
}

func collidesWith(c muster.Collision) string {
	switch {
	case c.With == 0 && len(c.Landed) > 0:
		return "what has landed of " + IDs(c.Landed)
	case c.With == 0:
		return "the target"
	case c.WithOwner == "":
		return fmt.Sprint(c.With)
	}
	return fmt.Sprintf("%d of %s", c.With, text.OneLine(string(c.WithOwner)))
}

// CollidingFiles names the first files of a collision with their lines, and counts the others: "a.go:3-5, b.go".
func CollidingFiles(files []muster.CollidingFile, most int) string {
	var named []string
	for _, f := range files[:min(len(files), most)] {
		name := text.CutColumns(text.OneLine(f.Path), 60)
		if f.Lines != "" {
			name += ":" + strings.ReplaceAll(text.OneLine(f.Lines), ", ", ",")
		}
		named = append(named, name)
	}
	if more := len(files) - most; more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(named, ", ")
}
