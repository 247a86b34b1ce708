package main

import (
	"testing"

	"github.com/spf13/cobra"
)

func TestEveryVerbHasAnExample(t *testing.T) {
	seen := 0
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
			if sub.Hidden {
				continue
			}
			seen++
			if sub.Example == "" || sub.Short == "" {
				t.Errorf("%s --help has no example, or does not say what it is for", sub.CommandPath())
			}
		}
	}
	visit(rootCommand())
	if seen < 10 {
		t.Errorf("%d verbs were looked at; there are more", seen)
	}
}
