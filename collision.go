package muster

// Collision says that the work of a task, as it is in its lane now, cannot be merged with that of another lane, or with
// the target, without a conflict. It is a hint: nothing is merged by it, and it may be over by the time it is read.
type Collision struct {
	Task  TaskID `json:"task"`
	Owner Name   `json:"owner"`
	// With is the other task, and WithOwner its owner. With 0 it is the target.
	With      TaskID `json:"with"`
	WithOwner Name   `json:"with_owner,omitempty"`
	// Landed are the tasks whose landed work the target has in these files and the lane has not. Only with the target.
	Landed []TaskID        `json:"landed,omitempty"`
	Files  []CollidingFile `json:"files"`
}

// CollidingFile is a file that collides, and where: text such as "3-5, 9", which is empty where no lines can be named,
// as in a binary file or one that a side deleted.
type CollidingFile struct {
	Path      string `json:"path"`
	Lines     string `json:"lines,omitempty"`      // as the task's lane has the file
	WithLines string `json:"with_lines,omitempty"` // as the other side has it
}

// Reversed returns the collision as the other side sees it.
func (c Collision) Reversed() Collision {
	r := c
	r.Task, r.Owner, r.With, r.WithOwner = c.With, c.WithOwner, c.Task, c.Owner
	r.Files = make([]CollidingFile, len(c.Files))
	for i, f := range c.Files {
		r.Files[i] = CollidingFile{Path: f.Path, Lines: f.WithLines, WithLines: f.Lines}
	}
	return r
}

// Grows reports whether the collision has a file that an earlier one of the same two does not have.
func (c Collision) Grows(earlier Collision) bool {
	known := map[string]bool{}
	for _, f := range earlier.Files {
		known[f.Path] = true
	}
	for _, f := range c.Files {
		if !known[f.Path] {
			return true
		}
	}
	return false
}
