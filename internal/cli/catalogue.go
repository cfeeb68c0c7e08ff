package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/config"
	"muster/internal/view"
	"muster/llm/catalogue"
)

// newModelsCommand returns muster models. It works everywhere, and sends nothing.
func newModelsCommand(a *App) *cobra.Command {
	return &cobra.Command{Use: "models [WORD]", Short: "the models whose limits and prices are known",
		Args: namedArgs("[WORD]"),
		Long: "A model that is not listed works too, with careful defaults. With WORD, only the names that contain\n" +
			"it. Prices are US dollars for a million tokens of a small request today.",
		RunE: func(_ *cobra.Command, args []string) error {
			found := []catalogue.Model{}
			for _, m := range config.ReadEndpoints(a.configOptions("")).Models(catalogue.All()) {
				if strings.Contains(strings.ToLower(m.Provider+"/"+m.Name), strings.ToLower(strings.Join(args, ""))) {
					found = append(found, m)
				}
			}
			if len(found) == 0 && len(args) > 0 {
				return muster.Errorf(muster.NotFound, "no known model has %q in its name", args[0]).
					WithHint("see all:  muster models")
			}
			return a.print(found, modelTable(found, a.Now()).Draw)
		}}
}

// modelTable returns models as a table. What is not known is a dash.
func modelTable(all []catalogue.Model, now time.Time) view.Table {
	t := view.Table{Wide: 3,
		Titles: []string{"MODEL", ">WINDOW", ">REPLY", "THINKING", "IMAGES", ">INPUT", ">OUTPUT", ">CACHED"}}
	for _, m := range all {
		thinking := cmp.Or(strings.Join(m.Thinking.Efforts, " "), string(m.Thinking.Style), "-")
		images := "-"
		if m.Images {
			images = "yes"
		}
		input, output, cached := "-", "-", "-"
		if p, ok := m.PriceAt(0, now); ok {
			input, output = fmt.Sprintf("%.2f", p.Input), fmt.Sprintf("%.2f", p.Output)
			if p.CacheRead > 0 {
				cached = strconv.FormatFloat(p.CacheRead, 'f', max(2, decimals(p.CacheRead)), 64)
			}
		}
		t.Row(m.Provider+"/"+m.Name, thousands(m.Window), thousands(m.MaxOutput), thinking, images, input, output,
			cached)
	}
	return t
}

// decimals is how many digits a number has behind the point, at most three.
func decimals(f float64) int {
	_, behind, _ := strings.Cut(strconv.FormatFloat(f, 'f', -1, 64), ".")
	return min(len(behind), 3)
}

// thousands returns a number of tokens in thousands or millions, and a dash for 0.
func thousands(n int) string {
	switch {
	case n == 0:
		return "-"
	case n >= 1e6:
		return strconv.FormatFloat(float64(n/10_000)/100, 'f', -1, 64) + "M"
	}
	return fmt.Sprintf("%dk", n/1000)
}
