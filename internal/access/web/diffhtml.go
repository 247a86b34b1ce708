package web

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"mailboxd/internal/access/web/code"
	"mailboxd/internal/cli/term"
)

// A codeLine is a line of a part of a difference, before it is written.
type codeLine struct {
	Op      gitdiff.LineOp
	Text    string
	Old     int64 // its number before, and New after the change; 0 where it isn't there
	New     int64
	Colours []code.Colour
	Changed []code.Piece // words that its pair doesn't have
	NoEnd   bool         // the file ends with it, without a line end
}

// A diffWriter writes the parts of a file as HTML. It is the only place that does, and write the
// only method that writes what an agent wrote: it escapes.
type diffWriter struct {
	out   strings.Builder
	split bool  // each line that stays is there twice, for two columns
	old   int64 // the number of the next line, after the part before
	lexer chroma.Lexer
}

// htmlOf returns the parts of a file.
func htmlOf(f *gitdiff.File, split bool) template.HTML {
	w := &diffWriter{split: split, old: 1, lexer: code.LexerOf(nameAfter(f))}
	for _, part := range f.TextFragments {
		if len(part.Lines) > 0 {
			w.part(part)
		}
	}
	return template.HTML(w.out.String())
}

// part writes a part: groups of lines that stay and of lines that change, in turns.
func (w *diffWriter) part(part *gitdiff.TextFragment) {
	where := strings.TrimSpace(part.Comment)
	if left := part.OldPosition - w.old; left > 0 && part.OldLines > 0 {
		where = strings.TrimSpace(fmt.Sprintf("%s unchanged  %s", lineCount(left), where))
	}
	w.old = part.OldPosition + part.OldLines
	if where != "" {
		w.out.WriteString(`<span class="at">`)
		w.write(cutLine(where))
		w.out.WriteString(`</span>`)
	}
	lines := codeLines(part)
	w.colour(lines)
	for len(lines) > 0 {
		n := 1
		for n < len(lines) && (lines[n].Op == gitdiff.OpContext) == (lines[0].Op == gitdiff.OpContext) {
			n++
		}
		w.group(lines[:n])
		lines = lines[n:]
	}
}

func lineCount(n int64) string {
	if n == 1 {
		return "1 line"
	}
	return number(n) + " lines"
}

// codeLines numbers the lines of a part.
func codeLines(part *gitdiff.TextFragment) []*codeLine {
	all := make([]*codeLine, 0, len(part.Lines))
	was, is := part.OldPosition, part.NewPosition
	for _, line := range part.Lines {
		text := strings.TrimSuffix(line.Line, "\n")
		one := &codeLine{Op: line.Op, Text: cutLine(text), NoEnd: len(text) == len(line.Line)}
		if line.Op != gitdiff.OpAdd {
			one.Old = was
			was++
		}
		if line.Op != gitdiff.OpDelete {
			one.New = is
			is++
		}
		all = append(all, one)
	}
	return all
}

// cutLine makes a line valid, and shortens one that is too long in columns or in bytes.
func cutLine(text string) string {
	cut := term.Cut(text[:min(len(text), 4*mostDiffText)], mostDiffText)
	if len(cut) == 4*mostDiffText && len(text) > len(cut) {
		cut += "…"
	}
	return strings.ToValidUTF8(cut, "\uFFFD")
}

// colour colours the lines of both sides, each as it stands in its file.
func (w *diffWriter) colour(lines []*codeLine) {
	for _, other := range []gitdiff.LineOp{gitdiff.OpAdd, gitdiff.OpDelete} {
		var side []*codeLine
		var texts []string
		for _, line := range lines {
			if line.Op != other {
				side, texts = append(side, line), append(texts, line.Text)
			}
		}
		for i, colours := range code.ColoursOf(w.lexer, texts) {
			side[i].Colours = colours
		}
	}
}

// group writes lines that all stay, or that all change. Those that change are removed lines and
// then added ones, which are compared in pairs.
func (w *diffWriter) group(lines []*codeLine) {
	if lines[0].Op == gitdiff.OpContext {
		w.out.WriteString(`<span class="both">`)
		for _, line := range lines {
			if w.split {
				w.line(line, "same old", line.Old)
			}
			w.line(line, "same", line.New)
		}
		w.out.WriteString(`</span>`)
		return
	}
	var gone, came []*codeLine
	for _, line := range lines {
		if line.Op == gitdiff.OpDelete {
			gone = append(gone, line)
		} else {
			came = append(came, line)
		}
	}
	for i := range min(len(gone), len(came)) {
		gone[i].Changed, came[i].Changed = code.ChangedWords(gone[i].Text, came[i].Text)
	}
	w.out.WriteString(`<span class="pair">`)
	for _, line := range gone {
		w.line(line, "minus", line.Old)
	}
	for _, line := range came {
		w.line(line, "plus", line.New)
	}
	w.out.WriteString(`</span>`)
}

// line writes a line with its number and its sign.
func (w *diffWriter) line(line *codeLine, class string, number int64) {
	w.out.WriteString(`<span class="` + class + `" data-n="` + strconv.FormatInt(number, 10) + `"`)
	if class == "same old" {
		w.out.WriteString(` aria-hidden="true"`)
	}
	w.out.WriteString(`>` + line.Op.String() + ` `)
	w.pieces(line)
	if line.NoEnd {
		w.out.WriteString(`<i>  (no line end)</i>`)
	}
	w.out.WriteString(`</span>`)
}

// pieces writes the text of a line: pieces with a colour each, within words that changed or not.
func (w *diffWriter) pieces(line *codeLine) {
	tag, at := "ins", 0
	if line.Op == gitdiff.OpDelete {
		tag = "del"
	}
	colours := line.Colours
	for _, changed := range line.Changed {
		colours = w.coloured(line.Text, code.Piece{Begin: at, End: changed.Begin}, colours)
		w.out.WriteString("<" + tag + ">")
		colours = w.coloured(line.Text, changed, colours)
		w.out.WriteString("</" + tag + ">")
		at = changed.End
	}
	w.coloured(line.Text, code.Piece{Begin: at, End: len(line.Text)}, colours)
}

// coloured writes a piece of a line, and returns the colours that reach behind it.
func (w *diffWriter) coloured(text string, part code.Piece, colours []code.Colour) []code.Colour {
	at := part.Begin
	for len(colours) > 0 && colours[0].Begin < part.End {
		c := colours[0]
		begin, end := max(c.Begin, at), min(c.End, part.End)
		w.write(text[at:begin])
		w.out.WriteString(`<i class="` + c.Class + `">`)
		w.write(text[begin:end])
		w.out.WriteString(`</i>`)
		at = end
		if c.End > part.End {
			break
		}
		colours = colours[1:]
	}
	w.write(text[at:part.End])
	return colours
}

// write writes text that an agent wrote.
func (w *diffWriter) write(text string) { w.out.WriteString(template.HTMLEscapeString(text)) }
