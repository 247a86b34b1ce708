package term

import "strings"

// Wrap breaks the paragraphs of a text between words, so that lines fit into columns.
// Empty lines separate paragraphs, and indented lines stay as they are. A word that is
// wider than columns has a line of its own. With 0 columns each paragraph is one line.
func Wrap(text string, columns int) string {
	var lines []string
	open := false // whether the last line belongs to a paragraph that goes on
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, " ") {
			lines, open = append(lines, strings.TrimRight(line, " ")), false
			continue
		}
		for _, word := range strings.Fields(line) {
			if last := len(lines) - 1; open && (columns <= 0 || Width(lines[last])+1+Width(word) <= columns) {
				lines[last] += " " + word
			} else {
				lines, open = append(lines, word), true
			}
		}
	}
	return strings.Join(lines, "\n")
}

// WrapIndented wraps a text, and indents all lines but the first by indent columns.
func WrapIndented(text string, columns, indent int) string {
	if columns > 0 {
		columns = max(columns-indent, 1)
	}
	return strings.ReplaceAll(Wrap(text, columns), "\n", "\n"+strings.Repeat(" ", indent))
}
