package term

import "strings"

// A Table has rows of cells. Each column is as wide as its widest cell, or narrower
// when the screen is too narrow: cells are cut then, and never wrapped.
type Table struct {
	Head    []string // the columns' names; none: the table has no heading
	Weights []int    // columns with a greater weight are cut later; 0: never; nil: all alike
	Widths  []int    // the least width of each column, as an earlier part had it; printing sets it
	rows    [][]Cell
}

// A Cell is an escaped text of one line with its paint.
type Cell struct {
	Text string
	Paint
}

// Add adds a row.
func (t *Table) Add(row ...Cell) { t.rows = append(t.rows, row) }

// IsEmpty reports whether the table has no rows.
func (t *Table) IsEmpty() bool { return len(t.rows) == 0 }

// Print writes the heading and the rows; nothing when there are no rows.
func (t *Table) Print(s Screen) error {
	var text strings.Builder
	for _, line := range t.Lines(s) {
		text.WriteString(line + "\n")
	}
	_, err := s.Write([]byte(text.String()))
	return err
}

// Lines returns the lines of the table.
func (t *Table) Lines(s Screen) []string {
	if len(t.rows) == 0 {
		return nil
	}
	widths := t.fit(s.Columns)
	t.Widths = widths
	var lines []string
	if t.Head != nil {
		head := make([]Cell, len(t.Head))
		for i, name := range t.Head {
			head[i] = Cell{name, Faint}
		}
		lines = append(lines, layOut(s, head, widths))
	}
	for _, row := range t.rows {
		lines = append(lines, layOut(s, row, widths))
	}
	return lines
}

// The space between columns, and the least width of a column that is cut.
const (
	columnGap   = 2
	leastColumn = 4
)

// fit returns the width of each column. The widest for its weight is cut first.
func (t *Table) fit(columns int) []int {
	widths := make([]int, len(t.rows[0]))
	copy(widths, t.Widths)
	for i, name := range t.Head {
		widths[i] = Width(name)
	}
	for _, row := range t.rows {
		for i, c := range row {
			widths[i] = max(widths[i], Width(c.Text))
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
			break // layOut cuts the line
		}
		widths[widest]--
	}
	return widths
}

// widest returns the column that is cut next, or -1.
func (t *Table) widest(widths []int) int {
	best, most := -1, 0
	for i, w := range widths {
		if t.Weights != nil {
			if t.Weights[i] == 0 {
				continue
			}
			w = w * 12 / t.Weights[i] // in twelfths, to divide by small numbers
		}
		if widths[i] > leastColumn && w > most {
			best, most = i, w
		}
	}
	return best
}

// layOut makes a line of cells. No line ends in space or is wider than the screen.
func layOut(s Screen, row []Cell, widths []int) string {
	var line strings.Builder
	at, pending := 0, 0
	for i, c := range row {
		room := widths[i]
		if s.Columns > 0 {
			room = min(room, s.Columns-at)
		}
		if room <= 0 {
			break
		}
		text := Cut(c.Text, room)
		if text != "" {
			line.WriteString(strings.Repeat(" ", pending) + s.Paint(c.Paint, text))
			pending = 0
		}
		pending += widths[i] - Width(text) + columnGap
		at += widths[i] + columnGap
	}
	return line.String()
}
