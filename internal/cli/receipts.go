package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/text"
	"muster/internal/view"
	"muster/team"
)

func newReceiptsCommand(a *App) *cobra.Command {
	verify := false
	c := &cobra.Command{Use: "receipts [TASK]", Short: "what proves the landed commits",
		Args: cobra.MaximumNArgs(1),
		Long: "Each landed commit is compared with its task's record and with what the check has said of its tree.\n" +
			"With --verify the command fails when one of them is not borne out."}
	c.Flags().BoolVar(&verify, "verify", false, "exit with 1 when a receipt does not hold")
	c.RunE = func(c *cobra.Command, args []string) error {
		var task muster.TaskID
		if len(args) > 0 {
			var err error
			if task, err = parseTaskID(c, args[0]); err != nil {
				return err
			}
		}
		bad := 0
		read := func(ctx context.Context, o opened) ([]team.Receipt, error) {
			all, err := team.ReceiptsOf(ctx, o.Team)
			if err == nil && task != 0 {
				err = errNoReceipt(ctx, o, task)
			}
			all = slices.DeleteFunc(all, func(x team.Receipt) bool { return task != 0 && x.Task != task })
			for _, x := range all {
				if x.Problem != "" {
					bad++
				}
			}
			return all, err
		}
		if err := list(a, "nothing has landed", read, receiptTable)(c, nil); err != nil {
			return err
		}
		if verify && bad > 0 {
			return muster.Errorf(muster.Invalid, "%s %s not hold", text.Count(bad, "receipt"),
				text.Plural(bad, "does", "do"))
		}
		return nil
	}
	return c
}

func errNoReceipt(ctx context.Context, o opened, id muster.TaskID) error {
	t, err := o.Tasks().Get(ctx, id)
	if err != nil {
		return hintAtList(err)
	}
	if t.Landed == nil {
		return muster.Errorf(muster.NotFound, "task %d has not landed, so it has no receipt", id).
			WithHint("muster task show %d", id)
	}
	return nil
}

// receiptTable returns receipts as a table. What does not hold stands in a column of its own.
func receiptTable(all []team.Receipt) view.Table {
	t := view.Table{Titles: []string{">TASK", "COMMIT", "SAYS", "CHECK", "PROBLEM"}, Wide: 4}
	for _, x := range all {
		ran := ""
		if x.CoveredBy != 0 {
			ran = fmt.Sprintf("that of task %d", x.CoveredBy)
		}
		if x.Kept != nil {
			ran = receiptText(*x.Kept)
		} else if len(x.Checks) > 0 {
			ran = view.Join(x.Checks, ", ", func(k team.CheckReceipt) string { return k.Name + " " + receiptText(k) })
		}
		t.Row(fmt.Sprint(x.Task), fmt.Sprintf("%.7s", x.Commit), view.Text(x.Says), view.Text(ran),
			view.Text(x.Problem))
	}
	return t
}

// proofLine says in a line how many receipts of landed commits git and the records of checks bear out, "" where none
// has landed.
func proofLine(all []team.Receipt) string {
	bad, checks := 0, map[string]bool{}
	for _, x := range all {
		if x.Problem != "" {
			bad++
		}
		if x.Kept != nil || len(x.Checks) > 0 {
			checks[x.Tree] = true
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d hold, by %s on record (muster receipts --verify)",
		len(all)-bad, len(all), text.Count(len(checks), "check"))
}

func receiptText(x team.CheckReceipt) string {
	text := fmt.Sprintf("%s %.1fs", x.How, x.Seconds)
	if x.Flaky {
		text += " (was red before)"
	}
	return text
}
