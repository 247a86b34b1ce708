package view

import (
	"fmt"
	"io"
	"strings"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
)

// PrintCards prints what agents can do as a table, or each as a line of JSON.
func PrintCards(w io.Writer, cards []client.Card, asJSON bool) error {
	if asJSON {
		for _, c := range cards {
			if err := term.PrintJSON(w, c); err != nil {
				return err
			}
		}
		return nil
	}
	list := &term.Table{Head: []string{"AGENT", "STATUS", "RUNNING", "NETWORK", "CAPABILITIES"}, Weights: []int{1, 1, 0, 0, 3}}
	for _, c := range cards {
		status := term.Cell{Text: c.Status, Paint: cardPaints[c.Status]}
		if c.Why != "" {
			status.Text += ": " + term.OneLine(c.Why)
		}
		running := fmt.Sprint(c.Running)
		if c.Concurrency > 0 {
			running = fmt.Sprintf("%d of %d", c.Running, c.Concurrency)
		}
		reach := c.Network
		if c.Sandbox {
			reach += ", sandbox"
		}
		list.Add(term.Cell{Text: term.OneLine(c.Agent)}, status, term.Cell{Text: running}, term.Cell{Text: reach}, term.Cell{Text: capabilitiesOf(c)})
	}
	return list.Print(term.ScreenOf(w))
}

var cardPaints = map[string]term.Paint{"degraded": term.Yellow, "offline": term.Red, "busy": term.Yellow}

func capabilitiesOf(c client.Card) string {
	var words []string
	for _, have := range c.Capabilities {
		word := have.ID
		if have.Version != "" {
			word += "@" + have.Version
		}
		words = append(words, term.OneLine(word))
	}
	return strings.Join(words, ", ")
}
