package cli

import (
	"encoding/json"
	"io"
	"runtime"
	"sync"
)

// batchSize is how many documents of a list are encoded at a time. A list of any length is printed in the memory of
// that many.
const batchSize = 512

// writeList prints documents as muster.Encode prints a list of them, to the byte, but it never has them all encoded at
// once, and uses all processors. It is the one fast path of package cli, for the limits that bench/ sets to the time of
// 1,000 tasks and to the memory of 100,000.
func writeList[T json.Marshaler](w io.Writer, all []T) error {
	if len(all) == 0 {
		_, err := io.WriteString(w, "[]\n")
		return err
	}
	texts := make([][]byte, min(runtime.GOMAXPROCS(0), 8)) // one for each goroutine, and used again
	errs := make([]error, len(texts))
	before := "[\n  "
	for len(all) > 0 {
		list := all[:min(len(all), batchSize)]
		all = all[len(list):]
		each := (len(list) + len(texts) - 1) / len(texts)
		var encoders sync.WaitGroup
		for i := range texts {
			texts[i] = texts[i][:0]
			part := list[min(i*each, len(list)):min((i+1)*each, len(list))]
			first := before
			if i > 0 {
				first = ",\n  "
			}
			encoders.Go(func() {
				for _, v := range part {
					data, err := v.MarshalJSON()
					if err != nil {
						errs[i] = err
						return
					}
					texts[i] = indented(append(texts[i], first...), data, 1)
					first = ",\n  "
				}
			})
		}
		encoders.Wait()
		for i, text := range texts {
			if errs[i] != nil {
				return errs[i]
			}
			if _, err := w.Write(text); err != nil {
				return err
			}
		}
		before = ",\n  "
	}
	_, err := io.WriteString(w, "\n]\n")
	return err
}

// indented appends a JSON document that has no blanks as muster.Encode writes one, so many levels deep.
// json.Indent does the same and takes the text apart anew for it, which is more work than to encode it was.
func indented(to, doc []byte, depth int) []byte {
	line := func() {
		to = append(to, '\n')
		for range depth {
			to = append(to, "  "...)
		}
	}
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; c {
		case '"':
			start := i
			for i++; doc[i] != '"'; i++ {
				if doc[i] == '\\' {
					i++
				}
			}
			to = append(to, doc[start:i+1]...)
		case '{', '[':
			to = append(to, c)
			if next := doc[i+1]; next == '}' || next == ']' {
				to = append(to, next)
				i++
				continue
			}
			depth++
			line()
		case '}', ']':
			depth--
			line()
			to = append(to, c)
		case ',':
			to = append(to, c)
			line()
		case ':':
			to = append(to, ": "...)
		default:
			to = append(to, c)
		}
	}
	return to
}
