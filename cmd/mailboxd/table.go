package main

import "strings"

// A table is rows of cells, each column as wide as it needs to be, or narrower
// where the screen is: cells are cut then, and never wrapped.
type table struct {
	head    []string // the columns' names; none: the table has no heading
	weights []int    // how dear the columns are when there is not room for all; 0 is never cut; nil: alike
	rows    [][]cell
	widths  []int // how wide the columns were in the part before; nil: there is none. Printing sets it
}

// A cell is a text, on one line and safe to show, and its colour.
type cell struct {
	text string
	paint
}

func (t *table) add(row ...cell) { t.rows = append(t.rows, row) }

// print shows the heading, unless there are no rows below it, and the rows.
func (t *table) print(s screen) error {
	var text strings.Builder
	for _, line := range t.lines(s) {
		text.WriteString(line + "\n")
	}
	_, err := s.Write([]byte(text.String()))
	return err
}

// lines lays the table out.
func (t *table) lines(s screen) []string {
	if len(t.rows) == 0 {
		return nil
	}
	widths := t.fit(s.columns)
	t.widths = widths
	var lines []string
	if t.head != nil {
		head := make([]cell, len(t.head))
		for i, name := range t.head {
			head[i] = cell{name, faint}
		}
		lines = append(lines, layOut(s, head, widths))
	}
	for _, row := range t.rows {
		lines = append(lines, layOut(s, row, widths))
	}
	return lines
}

// The space between columns, and the least that is left of one.
const (
	columnGap   = 2
	leastColumn = 4
)

// fit returns how wide each column may be: the widest give way first, the
// dear ones later.
func (t *table) fit(columns int) []int {
	widths := make([]int, len(t.rows[0]))
	copy(widths, t.widths)
	for i, name := range t.head {
		widths[i] = wide(name)
	}
	for _, row := range t.rows {
		for i, c := range row {
			widths[i] = max(widths[i], wide(c.text))
		}
	}
	if columns == 0 {
		return widths
	}
	total := columnGap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > columns; total-- {
		widest := t.widest(widths)
		if widest < 0 {
			break // it is cut off at the edge then
		}
		widths[widest]--
	}
	return widths
}

// widest returns the column that can spare some of its width best, or -1.
func (t *table) widest(widths []int) int {
	best, most := -1, 0
	for i, w := range widths {
		if t.weights != nil {
			if t.weights[i] == 0 {
				continue
			}
			w = w * 12 / t.weights[i] // in twelfths, to divide by small numbers
		}
		if widths[i] > leastColumn && w > most {
			best, most = i, w
		}
	}
	return best
}

// layOut puts cells in their columns. No line ends in space or passes the edge.
func layOut(s screen, row []cell, widths []int) string {
	var line strings.Builder
	at, pending := 0, 0
	for i, c := range row {
		room := widths[i]
		if s.columns > 0 {
			room = min(room, s.columns-at)
		}
		if room <= 0 {
			break
		}
		text := cut(c.text, room)
		if text != "" {
			line.WriteString(strings.Repeat(" ", pending) + s.paint(c.paint, text))
			pending = 0
		}
		pending += widths[i] - wide(text) + columnGap
		at += widths[i] + columnGap
	}
	return line.String()
}
