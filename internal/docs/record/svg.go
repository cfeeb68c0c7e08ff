package main

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The size of a character and the space around all of them, in the units of the picture.
const (
	cellWidth  = 8.4
	cellHeight = 19
	margin     = 14
)

// hold is how long the last frame stays before the picture begins again.
const hold = 7 * time.Second

// style has the colours of a light and of a dark page, each with a contrast of at least 4.5 to 1.
const style = `text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
text{fill:#1f2328;white-space:pre}
.p{fill:#fff;stroke:#d0d7de}.b{font-weight:700}.f{fill:#636c76}.u{text-decoration:underline}
.c0,.c8{fill:#57606a}.c1,.c9{fill:#b3261e}.c2,.c10{fill:#116329}.c3,.c11{fill:#7d4e00}.c4,.c12{fill:#0550ae}
.c5,.c13{fill:#8250df}.c6,.c14{fill:#125f6b}.c7,.c15{fill:#1f2328}.g0,.g7,.g8,.g15{fill:#e7ecf0}.g1,.g9{fill:#ffd8d3}
.g2,.g10{fill:#ccf2d5}.g3,.g11{fill:#fbecb5}.g4,.g12{fill:#d3e6ff}.g5,.g13{fill:#ecdfff}.g6,.g14{fill:#cdeff3}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.p{fill:#0d1117;stroke:#30363d}.f{fill:#9198a1}
.c0,.c8{fill:#9198a1}.c1,.c9{fill:#ff7b72}.c2,.c10{fill:#56d364}.c3,.c11{fill:#e3b341}.c4,.c12{fill:#79c0ff}
.c5,.c13{fill:#d2a8ff}.c6,.c14{fill:#76e3ea}.c7,.c15{fill:#e6edf3}.g0,.g7,.g8,.g15{fill:#30363d}.g1,.g9{fill:#67211c}
.g2,.g10{fill:#13432a}.g3,.g11{fill:#4b3a05}.g4,.g12{fill:#0c3a6e}.g5,.g13{fill:#45267a}.g6,.g14{fill:#0f4a50}}
`

// drawing is an SVG that is being written. Each different row is drawn once, and shown wherever it stands.
type drawing struct {
	rows map[string]string // the name of each row by its line
	defs strings.Builder
	body strings.Builder
}

// draw returns frames of a screen as an SVG: a still picture of one frame, and an animation of several. What is read
// out is the title.
func draw(frames []frame, columns, rows int, title string) string {
	d := &drawing{rows: map[string]string{}}
	width := strconv.FormatFloat(float64(columns)*cellWidth+2*margin, 'f', 1, 64)
	height := rows*cellHeight + 2*margin
	for i, f := range frames {
		for row, line := range f.lines {
			d.show(line, margin+i*height+row*cellHeight)
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %d" width="%s" role="img">`+
		"\n<title>%s</title>\n<style>%s%s</style>\n<defs>\n%s</defs>\n"+
		`<rect class="p" x=".5" y=".5" width="%s" height="%d" rx="8"/>`+"\n<g id=\"s\">%s</g>\n</svg>\n",
		width, height, width, html.EscapeString(title), style, motion(frames, height), d.defs.String(),
		strconv.FormatFloat(float64(columns)*cellWidth+2*margin-1, 'f', 1, 64), height-1, d.body.String())
}

// motion returns the animation: the frames stand below each other, and the strip jumps from one to the next. Who does
// not want motion sees the last frame.
func motion(frames []frame, height int) string {
	last := len(frames) - 1
	if last < 1 {
		return ""
	}
	total := frames[last].at - frames[0].at + hold
	var b strings.Builder
	fmt.Fprintf(&b, "#s{animation:s %.1fs step-end infinite}\n@keyframes s{", total.Seconds())
	for i, f := range frames {
		percent := 100 * (f.at - frames[0].at).Seconds() / total.Seconds()
		fmt.Fprintf(&b, "%.2f%%{transform:translateY(%dpx)}", percent, -i*height)
	}
	fmt.Fprintf(&b, "}\n@media(prefers-reduced-motion:reduce){#s{animation:none;transform:translateY(%dpx)}}\n",
		-last*height)
	return b.String()
}

// show puts a line of the screen at a height.
func (d *drawing) show(line string, y int) {
	name, ok := d.rows[line]
	if !ok {
		if drawn := row(line); drawn != "" {
			name = "r" + strconv.FormatInt(int64(len(d.rows)), 36)
			fmt.Fprintf(&d.defs, "<g id=\"%s\">%s</g>\n", name, drawn)
		}
		d.rows[line] = name
	}
	if name != "" {
		fmt.Fprintf(&d.body, "<use href=\"#%s\" y=\"%d\"/>", name, y)
	}
}

// row draws one line of the screen at the height 0; "" is an empty one.
func row(line string) string {
	var grounds, texts strings.Builder
	for _, p := range pieces(line) {
		x := strconv.FormatFloat(margin+float64(p.column)*cellWidth, 'f', 1, 64)
		n := utf8.RuneCountInString(p.text)
		text, ground := p.look.text, p.look.ground
		if p.look.reversed {
			ground, text = "g7", "" // the terminal's own colours the other way round, softly
		}
		if ground != "" {
			fmt.Fprintf(&grounds, `<rect x="%s" width="%.1f" height="%d"%s/>`, x, float64(n)*cellWidth, cellHeight,
				class(ground))
		}
		if strings.TrimSpace(p.text) == "" {
			continue
		}
		var extra []string
		if p.look.bold {
			extra = append(extra, "b")
		}
		if p.look.faint {
			extra = append(extra, "f")
		}
		if p.look.underlined {
			extra = append(extra, "u")
		}
		length := ""
		if n > 1 { // letters of another width keep their columns
			length = fmt.Sprintf(` textLength="%.1f"`, float64(n)*cellWidth)
		}
		fmt.Fprintf(&texts, `<tspan x="%s"%s%s>%s</tspan>`, x, length, class(text, extra...), html.EscapeString(p.text))
	}
	if texts.Len() == 0 {
		return grounds.String()
	}
	return grounds.String() + `<text y="14">` + texts.String() + "</text>"
}

// class returns the attributes of a colour and of further classes.
func class(colour string, extra ...string) string {
	own := ""
	if strings.HasPrefix(colour, "#") {
		own = ` style="fill:` + colour + `"`
	} else if colour != "" {
		extra = append([]string{colour}, extra...)
	}
	if len(extra) == 0 {
		return own
	}
	return ` class="` + strings.Join(extra, " ") + `"` + own
}
