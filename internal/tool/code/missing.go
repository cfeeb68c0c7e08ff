package code

import (
	"fmt"
	"strings"

	"muster/internal/editdist"
)

// explainMissing says why an edit has not found its old text, and shows the lines of the file that are nearest to it:
// the model most often quotes from memory, or has not seen a later change.
func explainMissing(name, text, old string) error {
	if strings.Count(text, "\n") > maxSimilarLines || strings.Count(old, "\n") > maxSimilarText {
		return fmt.Errorf("old_text is not in %s: read the part again that you want to change", name)
	}
	if strings.TrimSpace(old) == "" {
		return fmt.Errorf("old_text is not in %s: its whitespace differs", name)
	}
	// The newlines at both ends of old are left out, because the lines between them are what the model means.
	have, want := strings.Split(text, "\n"), strings.Split(strings.Trim(old, "\r\n"), "\n")
	at, isSame := nearestLines(have, want)
	if at.have < 0 {
		return fmt.Errorf("old_text is not in %s: read the file again, it may have changed", name)
	}
	from := max(0, at.have-at.want-1)
	to := min(len(have), from+len(want)+2, from+maxSnippetLines)
	lines := numberLines(have, from, to)
	if isSame {
		return fmt.Errorf("old_text is not in %s. Its line %d is there as line %d, but what is around it differs:\n%s",
			name, at.want+1, at.have+1, lines)
	}
	return fmt.Errorf("old_text is not in %s. The nearest lines are:\n%s", name, lines)
}

// pair is a line of a file and a line of a quote, by their index.
type pair struct{ have, want int }

// nearestLines returns where the lines of a quote are most likely meant to be: with the most lines that are the same
// apart from whitespace, or else where a line begins and ends most like the longest of the quote. have is -1 if there
// are none.
func nearestLines(have, want []string) (best pair, isSame bool) {
	best = pair{-1, 0}
	lines := map[string][]int{}
	for i, line := range have {
		lines[removeSpace(line)] = append(lines[removeSpace(line)], i)
	}
	// Each line that says something votes for the places at which the quote would begin. A brace alone says nothing.
	votes, most := map[int]int{}, 0
	const maxRepeats = 50 // a line that is everywhere says nothing, either
	longest := -1
	for i, line := range want {
		bare := removeSpace(line)
		if len(bare) < 4 {
			continue
		}
		if longest < 0 || len(bare) > len(removeSpace(want[longest])) {
			longest = i
		}
		for _, at := range lines[bare][:min(len(lines[bare]), maxRepeats)] {
			if votes[at-i]++; votes[at-i] > most {
				most, best = votes[at-i], pair{at, i}
			}
		}
	}
	if best.have >= 0 || longest < 0 {
		return firstVoter(best, have, want), best.have >= 0
	}
	score, wanted := 0.5, []byte(removeSpace(want[longest]))
	for i, line := range have {
		bare := []byte(removeSpace(line))
		head, tail := editdist.CommonEnds(wanted, bare)
		if same := 2 * float64(head+tail) / float64(len(wanted)+len(bare)); same > score {
			score, best = same, pair{i, longest}
		}
	}
	return best, false
}

// firstVoter returns the first pair of the same lines at the distance of best.
func firstVoter(best pair, have, want []string) pair {
	for i := range want[:min(best.want, len(want))] {
		at := best.have - best.want + i
		if at >= 0 && len(removeSpace(want[i])) >= 4 && removeSpace(have[at]) == removeSpace(want[i]) {
			return pair{at, i}
		}
	}
	return best
}

// removeSpace removes all whitespace of a line.
func removeSpace(line string) string { return strings.Join(strings.Fields(line), "") }
