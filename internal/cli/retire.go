package cli

import (
	"github.com/spf13/cobra"
)

// retire returns muster task retire, which ends a check that a task has published.
func (t taskCommands) retire() *cobra.Command {
	return &cobra.Command{Use: "retire ID CHECK", Args: namedArgs("ID", "CHECK"),
		Short: "end a check that a task has published: no landing has to pass it any more",
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseTaskID(c, args[0])
			if err != nil {
				return err
			}
			return t.changing(func(c *cobra.Command, o opened, _ []string) error {
				task, err := o.Tasks().RetireCheck(c.Context(), id, args[1])
				return t.printLine(task, hintAtList(err), "check %s of task %d is retired", args[1], id)
			})(c, args)
		}}
}
