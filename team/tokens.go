package team

import "muster/llm"

// partTokens is the estimate of a part: a token for four bytes.
func partTokens(p llm.Part) int { return llm.Parts{p}.Size() / 4 }

// prefixTokens is the estimate of a prefix.
func prefixTokens(system []string, tools []llm.Spec) (n int) {
	for _, s := range system {
		n += len(s) / 4
	}
	for _, t := range tools {
		n += (len(t.Name) + len(t.Description) + len(t.Schema)) / 4
	}
	return n
}
