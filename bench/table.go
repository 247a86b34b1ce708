package main

import (
	"fmt"
	"slices"
	"strings"
)

// A row is a line of the table: the figure of a contender in each round.
type row struct {
	measure string
	who     string // the contender, or the figure
	tasks   int    // 0: does not apply
	unit    string
	got     []float64
	cpu     []float64 // microseconds of a processor for each task
	beside  []float64 // got as a share of the first contender's of the same round
	keeps   string    // the data that survive a power cut
	note    string    // instead of a figure
}

// table writes rows in Markdown, below the description of the machine.
func table(machine string, rows []row) string {
	var b strings.Builder
	b.WriteString(machine + "\n\n| measure | contender or figure | tasks | median | min .. max | beside the first | CPU a task | kept through a power cut |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		tasks := ""
		if r.tasks > 0 {
			tasks = thousands(float64(r.tasks))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", r.measure, r.who, tasks, r.median(), r.spread(), share(r.beside), micros(r.cpu), r.keeps)
	}
	return b.String()
}

func (r row) median() string {
	if r.note != "" {
		return r.note
	}
	return number(median(r.got)) + " " + r.unit
}

func (r row) spread() string {
	if len(r.got) < 2 {
		return ""
	}
	return number(slices.Min(r.got)) + " .. " + number(slices.Max(r.got))
}

func share(ratios []float64) string {
	if len(ratios) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f x", median(ratios))
}

func micros(cpu []float64) string {
	if median(cpu) == 0 {
		return ""
	}
	return number(median(cpu)) + " us"
}

// number writes the significant digits.
func number(v float64) string {
	switch {
	case v >= 100:
		return thousands(v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func thousands(v float64) string {
	text := fmt.Sprintf("%.0f", v)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
