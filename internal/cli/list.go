package cli

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

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
	text.WriteString("\n]\n")
	_, err := text.WriteTo(w)
	return err
}
