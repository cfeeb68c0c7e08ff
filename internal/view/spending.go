package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster"
	"muster/internal/spend"
	"muster/internal/text"
)

// Spending is what the calls of models in a run have cost. Its JSON is what programs read, so the names of its fields
// are a format.
type Spending struct {
	Team   muster.Name `json:"team"`
	Budget string      `json:"budget"` // of the run; "" is none
	spend.Book
	Landed    spend.Sum `json:"landed"`     // for tasks that landed
	NotLanded spend.Sum `json:"not_landed"` // for tasks that have not, those excepted that were done without a change

	Subject func(muster.TaskID) string `json:"-"`
}

// NewSpending returns what a run has spent, by its board.
func NewSpending(run muster.Run, team muster.Name, book spend.Book, tasks []muster.Task) Spending {
	s := Spending{Team: team, Budget: run.Budget, Book: book}
	byID := map[muster.TaskID]muster.Task{}
	for _, t := range tasks {
		byID[t.ID] = t
	}
	s.Subject = func(id muster.TaskID) string { return byID[id].Subject }
	for id, sum := range book.Tasks {
		switch t := byID[id]; {
		case id == 0: // it belongs to no task
		case t.Landed != nil:
			s.Landed = s.Landed.Plus(sum)
		case t.Status != muster.Completed:
			s.NotLanded = s.NotLanded.Plus(sum)
		}
	}
	return s
}

// spentOf says what was spent, and of which budget. It is "" where nothing has a price and there is no budget.
func spentOf(budget string, s spend.Sum) string {
	b, _ := spend.ParseBudget(budget) // another program may have written it
	switch cost := s.Cost(); {
	case b.Tokens > 0 && cost != "":
		return tokens(float64(s.Tokens())) + " of " + b.String() + ", " + spentOf("", s)
	case b.Tokens > 0:
		return tokens(float64(s.Tokens())) + " of " + b.String()
	case cost == "unknown":
		return "price unknown"
	}
	return b.Of(s)
}

// Text says what was spent in all. It is "" where nothing has a price and there is no budget.
func (s Spending) Text() string { return spentOf(s.Budget, s.Total) }

// Draw returns what was spent in all, then by member, by task and by model.
func (s Spending) Draw(screen Screen) string {
	w := new(strings.Builder)
	parts := []string{s.Text(), tokens(float64(s.Total.Tokens())) + " tokens", text.Count(s.Total.Calls, "call")}
	if strings.Contains(parts[0], "tokens") { // of a budget
		parts = slices.Delete(parts, 1, 2)
	}
	fmt.Fprintf(w, "team %s   %s\n", s.Team, strings.TrimPrefix(strings.Join(parts, ", "), ", "))
	member := func(n muster.Name) Cell {
		c := Named(cmp.Or(s.Agents[n].Member, n))
		if _, isHelper := s.Agents[n]; isHelper {
			c.Text = helperLabel(n)
		}
		return c
	}
	task := func(id muster.TaskID) Cell {
		if id == 0 {
			return Text("no task")
		}
		subject := text.CutColumns(text.OneLine(s.Subject(id)), taskColumn)
		return Text(strings.TrimSpace(fmt.Sprintf("%d %s", id, subject)))
	}
	model := func(name string) Cell { return Text(text.OneLine(cmp.Or(name, "-"))) }
	rows, sums := s.byMember()
	w.WriteString(drawSums("MEMBER", rows, sums, member, s.Total, screen) +
		drawSums("TASK", dearest(s.Tasks), s.Tasks, task, s.Total, screen) +
		drawSums("MODEL", dearest(s.Models), s.Models, model, s.Total, screen))
	if n := s.Total.Unpriced; n > 0 {
		fmt.Fprintf(w, "the price of %s is not known; say it: models: in your own config.yaml\n", text.Count(n, "call"))
	}
	if n := s.Total.Estimated; n > 0 {
		fmt.Fprintf(w, "%s %s cut off or not counted by the server, and estimated\n", text.Count(n, "call"),
			text.Plural(n, "was", "were"))
	}
	return w.String()
}

// byMember returns the rows of the members, each with its helpers below it, and what each row has cost. The row of a
// member is without its helpers, so that the rows add up to the total.
func (s Spending) byMember() (rows []muster.Name, sums map[muster.Name]spend.Sum) {
	helpers := map[muster.Name]map[muster.Name]spend.Sum{}
	sums = map[muster.Name]spend.Sum{}
	for name, a := range s.Agents {
		if helpers[a.Member] == nil {
			helpers[a.Member] = map[muster.Name]spend.Sum{}
		}
		helpers[a.Member][name], sums[name] = a.Sum, a.Sum
	}
	for _, name := range dearest(s.Members) {
		sums[name] = s.Own(name, func(muster.Name) bool { return true })
		rows = append(append(rows, name), dearest(helpers[name])...)
	}
	return rows, sums
}

// dearest returns the keys of sums, that of the largest first.
func dearest[K cmp.Ordered](sums map[K]spend.Sum) []K {
	return slices.SortedFunc(maps.Keys(sums), func(a, b K) int {
		x, y := sums[a], sums[b]
		return cmp.Or(cmp.Compare(y.Dollars, x.Dollars), cmp.Compare(y.Tokens(), x.Tokens()), cmp.Compare(a, b))
	})
}

// drawSums returns a table of sums, in the order of keys. What costs nothing has no column of costs.
func drawSums[K cmp.Ordered](
	title string, keys []K, sums map[K]spend.Sum, name func(K) Cell, all spend.Sum, s Screen,
) string {
	if len(keys) == 0 {
		return ""
	}
	t := Table{Titles: []string{title, ">CALLS", ">INPUT", ">CACHED", ">OUTPUT"}, Least: []int{1, 3}}
	if all.Dollars > 0 {
		t.Titles = append(t.Titles, ">COST")
	}
	for _, k := range keys {
		x := sums[k]
		row := []any{name(k), x.Calls, tokens(float64(x.Input + x.CacheWrite + x.CacheWriteLong)),
			tokens(float64(x.CacheRead)), tokens(float64(x.Output)), x.Cost()}
		t.Row(row[:len(t.Titles)]...)
	}
	return "\n" + t.Draw(s)
}

// line says in the summary of a run what it has spent, and what for. It is "" where nothing has a price.
func (s Spending) line(landed int) string {
	spent := s.Text()
	if spent == "" {
		return ""
	}
	if s.Total.Dollars > 0 {
		if landed > 1 {
			spent += fmt.Sprintf(", %v for each task that landed", s.Total.Dollars/spend.Dollars(landed))
		}
		if cost := s.NotLanded.Cost(); cost != "" {
			spent += ", " + cost + " on work that did not land"
		}
	}
	if n := s.Total.Unpriced; n > 0 && n < s.Total.Calls {
		spent += fmt.Sprintf(" (the price of %s is not known)", text.Count(n, "call"))
	}
	return "spent:      " + spent
}
