package landing

import (
	"context"
	"strings"

	"muster/internal/lazyregexp"
)

// mentionedWord matches what names something of a program in the output of a check: a word in quotation marks, one that
// is called, and one that no sentence has, such as parseDate, ParseDate or parse_date.
var mentionedWord = lazyregexp.New(
	`['"\x60‘“]([A-Za-z_]\w{2,})['"\x60’”]|\b([A-Za-z_]\w{2,})\(|` +
		`\b([A-Za-z]\w*[a-z][A-Z]\w*|[A-Z]\w*[a-z]\w*|[A-Za-z]+_\w+)\b`)

// diffWord matches the words of a difference.
var diffWord = lazyregexp.New(`[A-Za-z_]\w{2,}`)

// mentionedChanges returns the changes whose changed lines have a word that names something in the output: where one
// side has renamed a function, the other's file is all that the output names. A word that most changes have tells
// nothing, and is left out.
func mentionedChanges(
	ctx context.Context, l *Lander, all []landedChange, output string,
) (mentioned []landedChange, err error) {
	words := map[string]bool{}
	for _, m := range mentionedWord().FindAllStringSubmatch(output, -1) {
		words[m[1]+m[2]+m[3]] = true
	}
	if len(words) == 0 {
		return nil, nil
	}
	looked := all[:min(len(all), maxChanges)]
	has := make([]map[string]bool, len(looked)) // the words of the output that each change has
	count := map[string]int{}
	for i, c := range looked {
		diff, err := diffOf(ctx, l, c.commit, c.files)
		if err != nil {
			return nil, err
		}
		has[i] = changedWords(diff[:min(len(diff), maxReadDiff)], words)
		for w := range has[i] {
			count[w]++
		}
	}
	for i, c := range looked {
		for w := range has[i] {
			if count[w] == 1 || 2*count[w] <= len(looked) {
				mentioned = append(mentioned, c)
				break
			}
		}
	}
	return mentioned, nil
}

// maxReadDiff is how many bytes of a difference are looked at for words.
const maxReadDiff = 256 << 10

// changedWords returns those of the words that the added and deleted lines of a difference have.
func changedWords(diff string, words map[string]bool) map[string]bool {
	found := map[string]bool{}
	for line := range strings.Lines(diff) {
		if !strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "-") ||
			strings.HasPrefix(line, "+++ ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		for _, w := range diffWord().FindAllString(line, -1) {
			if words[w] {
				found[w] = true
			}
		}
	}
	return found
}
