package transcript

import (
	"fmt"
	"strings"
)

// A Diff is a change of a file in the content of a call in ACP.
type Diff struct {
	Type string  `json:"type"`
	Path string  `json:"path"`
	Old  *string `json:"oldText"` // nil: the file is new
	New  string  `json:"newText"`
}

// around is how many unchanged lines a diff has around the change.
const around = 3

// Unified returns the change as a unified diff with one hunk, from the first line that differs to
// the last one.
func (d Diff) Unified() string {
	from, before := "/dev/null", []string(nil)
	if d.Old != nil {
		from, before = d.Path, linesOf(*d.Old)
	}
	after := linesOf(d.New)
	head := 0
	for head < min(len(before), len(after)) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < min(len(before), len(after))-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	if head == len(before) && head == len(after) {
		return ""
	}
	start, more := max(0, head-around), min(around, tail)
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", oneLine(from), oneLine(d.Path))
	oldCount, newCount := len(before)-tail+more-start, len(after)-tail+more-start
	fmt.Fprintf(&b, "@@ -%s +%s @@\n", span(start, oldCount), span(start, newCount))
	write(&b, ' ', before[start:head])
	write(&b, '-', before[head:len(before)-tail])
	write(&b, '+', after[head:len(after)-tail])
	write(&b, ' ', before[len(before)-tail:len(before)-tail+more])
	return b.String()
}

// linesOf splits a text after its line breaks.
func linesOf(text string) []string {
	all := strings.SplitAfter(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// span is the position of a part of a file; an empty part is behind the line before it.
func span(start, count int) string {
	if count > 0 {
		start++
	}
	return fmt.Sprintf("%d,%d", start, count)
}

func write(b *strings.Builder, sign byte, part []string) {
	for _, line := range part {
		b.WriteByte(sign)
		b.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// oneLine keeps a path from beginning other lines of a diff.
func oneLine(path string) string { return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(path) }
