package cli

import (
	"bufio"
	"context"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"muster/internal/view"
)

// list returns the function of a command that lists what read returns: as JSON, or as a table. Where there is nothing
// to list, it prints the sentence none in place of an empty table. Where there is no team, nothing is listed.
func list[T any](
	a *App, none string, read func(context.Context, opened) ([]T, error), table func([]T) view.Table,
) func(*cobra.Command, []string) error {
	printAll := func(all []T) error {
		// JSON shows [] where there is nothing, so that a program can always iterate.
		return a.print(append([]T{}, all...), func(s view.Screen) string {
			if len(all) == 0 {
				return none + "\n"
			}
			return table(all).Draw(s)
		})
	}
	return a.looking(func() error { return printAll(nil) }, func(c *cobra.Command, o opened, _ []string) error {
		all, err := read(c.Context(), o)
		if err != nil {
			return err
		}
		return printAll(all)
	})
}

// writeList prints documents as muster.Encode prints a list of them, to the byte, but it never has them all encoded at
// once. The memory that bench/ allows for a board of 100,000 tasks needs that.
func writeList[T any](w io.Writer, all []T) error {
	// A write for each document would cost a system call for each line of a long list.
	buffer := bufio.NewWriterSize(w, 64<<10)
	// Documents may have fields of other programs, which are printed as they are.
	e := jsontext.NewEncoder(buffer, jsontext.WithIndent("  "), jsontext.PreserveRawStrings(true),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := json.MarshalEncode(e, all); err != nil {
		return err
	}
	return buffer.Flush()
}
