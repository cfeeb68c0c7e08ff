package config

import (
	"math"
	"strconv"
	"strings"

	"muster"
)

// units are those of sizes. They are powers of two, as in most tools that limit memory.
var units = []struct {
	name  string
	bytes float64
}{{"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}, {"TB", 1 << 40}}

// A number without a unit is refused: whether it is bytes or megabytes differs from tool to tool, and a limit that is a
// million times too low or too high does more harm than a message.

// ParseSize returns the bytes of a size such as 512MB, 1.5GB, 0, or 75%, which is of whole.
func ParseSize(text string, whole int64) (int64, error) {
	number, unit := strings.ToUpper(strings.TrimSpace(text)), 1.0
	if number == "0" || number == "" {
		return 0, nil
	}
	known := false
	if before, ok := strings.CutSuffix(number, "%"); ok {
		number, unit, known = before, float64(whole)/100, true
	}
	for _, u := range units {
		if before, ok := strings.CutSuffix(number, u.name); ok {
			number, unit, known = before, u.bytes, true
		}
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !known || !(n > 0) || n*unit > math.MaxInt64/2 {
		return 0, muster.Errorf(muster.Invalid, "%q is no size: write it like 512MB, 8GB or 0", text)
	}
	return int64(n * unit), nil
}

// checkSize refuses what is no size.
func checkSize(text string) error {
	_, err := ParseSize(text, 100)
	return err
}
