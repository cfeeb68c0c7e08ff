package landing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/text"
)

// approval says that a role has approved the work of a task. It is kept beside the receipts of checks, so that neither
// a crash nor a target that moves makes anybody review the same work twice.
type approval struct {
	Key      string          `json:"key"` // of the task, the role and the difference: another needs its own
	Task     muster.TaskID   `json:"task"`
	Role     string          `json:"role"`
	Model    string          `json:"model"`
	Head     string          `json:"head"` // the lane's commit that was reviewed
	At       time.Time       `json:"at"`
	Comments []ReviewComment `json:"comments,omitempty"`
	Text     string          `json:"text,omitempty"`

	base string // where the lane left the target
}

// String says it as the trailer of the landed commit does.
func (x *approval) String() string {
	if x == nil {
		return ""
	}
	return text.OneLine(fmt.Sprintf("approved by %s (%s)", x.Role, x.Model))
}

// reviewedWork returns what an approval of the work would be of. The key has the files that are changed, as
// they were and as they are, and not the ids of commits: work into which more of the target was merged is the same
// work, as long as that touches none of its files.
func (l *landing) reviewedWork(ctx context.Context, tip string) (x approval, err error) {
	x = approval{Task: l.task.ID, Role: l.reviewRole(), Head: l.head}
	if x.base, err = l.leftAt(ctx, l.repo, tip); err != nil {
		return x, err
	}
	changed, err := l.repo.Do(ctx, git.Call{Dir: l.repo.CommonDir(), Bare: true,
		Args: []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", x.base, l.head, "--"}})
	if err != nil {
		return x, unavailable(ctx, "git cannot compare the lane with the target", err)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %s\n%s", x.Task, muster.RoleKey(x.Role), changed)
	x.Key = hex.EncodeToString(sum.Sum(nil)[:16])
	return x, nil
}

// path returns the file of the approval below the directory of receipts.
func (x *approval) path(receipts string) string {
	return filepath.Join(receipts, "reviews", x.Key+".json")
}

// keep writes the approval. Without a directory it holds for the landing that is under way.
func (x *approval) keep(receipts string) error {
	if receipts == "" {
		return nil
	}
	data, err := json.MarshalIndent(x, "", "  ")
	if err == nil {
		err = durable.New(durable.OS{}).Replace(x.path(receipts), append(data, '\n'))
	}
	if err != nil {
		return muster.Errorf(muster.Unavailable, "the review cannot be recorded: %w", err)
	}
	return nil
}

// maxApproval is how large the file of an approval may be.
const maxApproval = 1 << 20

// readApproval returns the approval of the work, if there is one. One that cannot be read approves nothing, and the
// work is reviewed again.
func readApproval(receipts string, of approval) (x approval, ok bool) {
	if receipts == "" {
		return x, false
	}
	data, err := durable.ReadRegular(of.path(receipts), maxApproval)
	if err != nil || json.Unmarshal(data, &x) != nil || x.Key != of.Key || x.Task != of.Task || x.Role == "" {
		return approval{}, false
	}
	x.base = of.base
	return x, true
}
