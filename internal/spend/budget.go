package spend

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"muster"
)

// Dollars is an amount of US dollars in billionths, so that sums are exact whatever their order.
type Dollars int64

// dollar is one dollar.
const dollar Dollars = 1e9

// FromFloat returns an amount of dollars, rounded to a billionth.
func FromFloat(dollars float64) Dollars { return Dollars(math.Round(dollars * float64(dollar))) }

// Float returns the amount as a number of dollars.
func (d Dollars) Float() float64 { return float64(d) / float64(dollar) }

// String returns the amount as people write it: $0.42. An amount below a cent has more digits, because $0.00 would say
// that nothing was spent.
func (d Dollars) String() string {
	switch {
	case d <= 0 || d >= dollar/100:
		return fmt.Sprintf("$%.2f", d.Float())
	case d >= dollar/10_000:
		return fmt.Sprintf("$%.4f", d.Float())
	}
	return "under $0.0001"
}

// MarshalJSON writes the amount as a number of dollars.
func (d Dollars) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, d.Float(), 'f', -1, 64), nil
}

// UnmarshalJSON reads what MarshalJSON has written.
func (d *Dollars) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(string(data), 64)
	if *d = FromFloat(f); err == nil && (f < 0 || f > maxCall) {
		err = fmt.Errorf("no call costs %s dollars", data)
	}
	return err
}

// Budget is a limit in dollars or in tokens; one of the two is 0. The zero Budget is none.
type Budget struct {
	Dollars Dollars
	Tokens  int
}

// None is the text of a budget that limits nothing. It says so where another budget would hold otherwise.
const None = "none"

// maxCall is the most that a record of a call may say, in dollars or thousands of tokens. So no sum overflows soon, and
// no record that another program has written takes anything away.
const maxCall = 1e6

// maxBudget is the largest budget, in dollars or tokens.
const maxBudget = 1e9

// howBudget tells users how to write a budget.
const howBudget = `a budget is an amount of dollars such as 5 or 2.50, or a number of tokens such as "200k tokens"`

// ParseBudget reads a budget: 5, $5 or 2.50 is an amount of dollars; 200000 tokens, 200k tokens or 2M tokens is a
// number of tokens. "" and None are the zero Budget. Errors are Invalid.
func ParseBudget(text string) (b Budget, err error) {
	s := strings.ToLower(strings.TrimSpace(text))
	if s == "" || s == None {
		return b, nil
	}
	number, isTokens := strings.CutSuffix(strings.TrimSuffix(s, "s"), "token")
	number = strings.TrimSpace(number)
	number, inDollars := strings.CutPrefix(number, "$")
	digits, unit := strings.TrimRight(number, "km"), 1.0
	switch number[len(digits):] {
	case "":
	case "k":
		unit = 1e3
	case "m":
		unit = 1e6
	default:
		digits = ""
	}
	f, err := strconv.ParseFloat(digits, 64)
	isNumber := err == nil && strings.Trim(digits, "0123456789.") == ""
	n := f * unit
	switch {
	case !isNumber, inDollars && (isTokens || unit > 1):
		return b, muster.Errorf(muster.Invalid, "%q is no budget: %s", text, howBudget)
	case !isTokens && unit > 1:
		return b, muster.Errorf(muster.Invalid, "the budget %q says neither dollars nor tokens: %s", text, howBudget)
	case n <= 0 || n > maxBudget || isTokens && n != math.Trunc(n):
		return b, muster.Errorf(muster.Invalid, "the budget %q is not between 0 and a billion; none is %q", text, None)
	case isTokens:
		return Budget{Tokens: int(n)}, nil
	}
	return Budget{Dollars: FromFloat(n)}, nil
}

// String returns the budget as ParseBudget reads it: $5.00, 200k tokens, or none.
func (b Budget) String() string {
	switch {
	case b.Dollars > 0 && b.Dollars%(dollar/100) == 0:
		return b.Dollars.String()
	case b.Dollars > 0:
		return "$" + strconv.FormatFloat(b.Dollars.Float(), 'f', -1, 64)
	case b.Tokens > 0 && b.Tokens%1e6 == 0:
		return fmt.Sprintf("%dM tokens", b.Tokens/1e6)
	case b.Tokens > 0 && b.Tokens%1e3 == 0:
		return fmt.Sprintf("%dk tokens", b.Tokens/1e3)
	case b.Tokens > 0:
		return fmt.Sprintf("%d tokens", b.Tokens)
	}
	return None
}

// IsLower reports whether b allows less than c, whatever is spent. A limit in dollars and one in tokens cannot be
// compared, and neither is lower.
func (b Budget) IsLower(c Budget) bool {
	return b != Budget{} && (c == Budget{} ||
		b.Dollars > 0 && b.Dollars < c.Dollars || b.Tokens > 0 && b.Tokens < c.Tokens)
}

// Used returns how much of the budget a sum is: 1 is all of it. Without a budget it is 0.
func (b Budget) Used(s Sum) float64 {
	switch {
	case b.Dollars > 0:
		return float64(s.Dollars) / float64(b.Dollars)
	case b.Tokens > 0:
		return float64(s.Tokens()) / float64(b.Tokens)
	}
	return 0
}

// Of returns a sum beside the budget that it counts against: $0.42 of $5.00.
func (b Budget) Of(s Sum) string {
	switch {
	case b.Dollars > 0:
		spent := s.Cost()
		if spent == "" {
			spent = s.Dollars.String()
		}
		return spent + " of " + b.String()
	case b.Tokens > 0:
		return fmt.Sprintf("%d of %v", s.Tokens(), b)
	}
	return s.Cost()
}

// Next returns a budget with which a run can go on that has used up b: half as much again, and more than was spent,
// rounded up to one digit.
func (b Budget) Next(s Sum) string {
	n := max(1.5*b.Dollars.Float(), 1.25*s.Dollars.Float())
	if b.Tokens > 0 {
		n = max(1.5*float64(b.Tokens), 1.25*float64(s.Tokens()))
	}
	unit := math.Pow(10, math.Floor(math.Log10(n)))
	n = math.Ceil(n/unit-1e-9) * unit
	if b.Tokens > 0 {
		return fmt.Sprintf("%q", Budget{Tokens: int(n)}.String())
	}
	return strconv.FormatFloat(FromFloat(n).Float(), 'f', -1, 64)
}
