package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

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
		return a.print(emptyNotNil(all), func(s view.Screen) string {
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

// emptyNotNil returns a list that JSON shows as [] when it has nothing. A program that reads the output can then
// always iterate over it.
func emptyNotNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// listBlock is about how many bytes of a list are written at a time. A list of any length is printed in the memory of
// that many.
const listBlock = 64 << 10

// writeList prints documents as muster.Encode prints a list of them, to the byte, but it never has them all encoded at
// once. The memory that bench/ allows for a board of 100,000 tasks needs that.
func writeList[T json.Marshaler](w io.Writer, all []T) error {
	if len(all) == 0 {
		_, err := io.WriteString(w, "[]\n")
		return err
	}
	var text bytes.Buffer
	separator := "[\n  "
	for _, v := range all {
		data, err := v.MarshalJSON()
		if err != nil {
			return err
		}
		text.WriteString(separator)
		indented, err := jsontext.AppendFormat(text.AvailableBuffer(), data, jsontext.PreserveRawStrings(true),
			jsontext.WithIndentPrefix("  "), jsontext.WithIndent("  "))
		if err != nil {
			return err
		}
		text.Write(indented)
		separator = ",\n  "
		// A write for each document would cost a system call for each line of a long list.
		if text.Len() < listBlock {
			continue
		}
		if _, err := text.WriteTo(w); err != nil {
			return err
		}
	}
	// The list ends as muster.Encode ends one: the bracket on a line of its own, and a newline.
	text.WriteString("\n]\n")
	_, err := text.WriteTo(w)
	return err
}
