package config

import (
	"cmp"
	"reflect"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"muster"
	"muster/internal/spend"
)

// propose sets what a repository's own file says, if it counts, and notes it as withheld if it does not. What would
// hold without the file holds then.
func (l *fileLoader) propose(n ast.Node, s Setting, text string) error {
	before, source := s.text(), l.sources[s.Name]
	// It is set first, because only then is it known to be right, and a mistake is reported in any case.
	err := l.set(s, text, l.source)
	if err != nil && s.Name == "model" && l.Endpoints.isUnknown(text) {
		// It may be an endpoint of the one who wrote the file. Only a run needs it, and then says that it is missing.
		l.Model, l.sources[s.Name], err = text, l.source, nil
	}
	if err != nil {
		return l.errorAt(n, err.Error())
	}
	after := s.text()
	delete(l.withheld, s.Name) // of a setting that the file has twice, the later one is meant
	if after == before {
		return nil // nothing is chosen by it
	}
	for _, model := range s.models() {
		err := l.checkServer(model)
		if err == nil {
			continue
		}
		if err = l.errorAt(n, err.Error()); s.Name != "model" {
			return err
		}
		// A refused model is set all the same: whether the refusal matters is known only when all sources are read.
		l.errRefused = err
		return nil
	}
	withheld, err := l.withhold(s, before, after)
	if err != nil || withheld == nil {
		return err
	}
	l.withheld[s.Name] = withheld
	return l.set(s, before, source)
}

// withhold returns the value as withheld if it does not count, and nil if it does. before is what would hold without
// the file.
func (l *fileLoader) withhold(s Setting, before, after string) (*Withheld, error) {
	switch s.inRepository {
	case counts:
		return nil, nil
	case mayLower:
		if s.isLower(before, after) {
			return nil, nil
		}
		return &Withheld{Value: after}, nil
	case needsTrust, stopsRuns:
	}
	if trusted, err := l.trusts(s.Name, after); err != nil || trusted {
		return nil, err
	}
	return &Withheld{Value: after, NeedsTrust: true, StopsRuns: s.inRepository == stopsRuns}, nil
}

// isLower reports whether one value of a setting is lower than another: a number, or a budget. Both were read before.
func (s Setting) isLower(before, after string) bool {
	if s.Kind() == reflect.Int {
		was, _ := strconv.Atoi(before)
		is, _ := strconv.Atoi(after)
		return is < was
	}
	was, _ := spend.ParseBudget(before)
	is, _ := spend.ParseBudget(after)
	return is.IsLower(was)
}

// checkServer refuses a model whose name chooses a server or a script, trusted or not: the server would get the user's
// key and code. The user's own file may say the same.
func (l *fileLoader) checkServer(model string) error {
	c, err := ParseModel(model)
	if err != nil || c.Server() == "" {
		return nil //nolint:nilerr // A name that is wrong altogether was reported when it was set.
	}
	what := "the server that your key and your code go to"
	if c.URL == "" {
		what = "a script that says what the members do"
	}
	return muster.Errorf(muster.Invalid, "a repository may not choose "+what+": if you want this model, "+
		"set the same in %s, else choose one with --model", cmp.Or(l.userFile, "your own config.yaml"))
}
