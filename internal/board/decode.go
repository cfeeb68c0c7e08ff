package board

import (
	"muster"
	"muster/internal/flat"
)

// plain reads a task as the program itself writes it, without reflection: the first look at a large board is mostly this.
// False: something in it is not of that form, such as another program's field.
func plain(data []byte) (t muster.Task, ok bool) {
	t.Status = muster.Pending
	r := flat.Read(data)
	for r.Next() {
		switch string(r.Name()) {
		case "id":
			t.ID = muster.TaskID(r.Int())
		case "subject":
			t.Subject = r.Text()
		case "description":
			t.Description = r.Text()
		case "status":
			t.Status = status(r.Text())
		case "owner":
			t.Owner = muster.Name(r.Text())
		case "blockedBy":
			t.BlockedBy = ids(&r)
		case "dependsOn":
			t.DependsOn = ids(&r)
		case "blocks":
			t.Blocks = ids(&r)
		case "claim_role":
			t.ClaimRole = r.Text()
		case "priority":
			t.Priority = r.Int()
		case "worktree":
			t.Worktree = muster.Name(r.Text())
		case "base":
			t.Base = r.Text()
		case "claimed_at":
			t.ClaimedAt = r.Number()
		case "claim_source":
			t.ClaimSource = r.Text()
		case "fence":
			t.Fence = r.Int()
		case "attempts":
			t.Attempts = r.Int()
		case "returns":
			t.Returns = r.Int()
		case "created_by":
			t.CreatedBy = muster.Name(r.Text())
		case "created_at":
			t.CreatedAt = r.Number()
		case "updated_at":
			t.UpdatedAt = r.Number()
		case "require_plan":
			t.RequirePlan = r.Bool()
		case "landed":
			switch {
			case r.Null():
				t.Landed = nil
			case t.Landed != nil: // there twice: encoding/json mixes the two
				r.Fail()
			default:
				raw := flat.Read(r.Raw())
				t.Landed = landed(&raw)
				if raw.Bad() {
					r.Fail()
				}
			}
		case "completed_by":
			t.CompletedBy = muster.Name(r.Text())
		case "result":
			t.Result = r.Text()
		case "note":
			t.Note = r.Text()
		default:
			r.Fail()
		}
	}
	return t, !r.Bad() && t.DependsOn != nil
}

func landed(r *flat.Reader) *muster.Landed {
	var l muster.Landed
	for r.Next() {
		switch string(r.Name()) {
		case "commit":
			l.Commit = r.Text()
		case "receipt":
			l.Receipt = r.Text()
		case "check":
			l.Check = r.Text()
		case "seconds":
			l.Seconds = r.Number()
		default:
			r.Fail()
		}
	}
	return &l
}

func ids(r *flat.Reader) []muster.TaskID {
	list := r.Ints()
	all := make([]muster.TaskID, len(list))
	for i, n := range list {
		all[i] = muster.TaskID(n)
	}
	return all
}

// status is a status without a text of its own for each task.
func status(s string) muster.TaskStatus {
	for _, known := range [...]muster.TaskStatus{muster.Pending, muster.InProgress, muster.Landing, muster.Completed, muster.NeedsAttention} {
		if string(known) == s {
			return known
		}
	}
	return muster.TaskStatus(s)
}
