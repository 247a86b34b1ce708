package backup

import (
	"errors"
	"os"
	"testing"
)

// moveUpTo moves a mailbox up to a stage.
func moveUpTo(t *testing.T, from, to Location, reached string) {
	t.Helper()
	root, state := step{from.Root, to.Root}, step{from.State, to.State}
	for _, stage := range []struct {
		name string
		do   func() error
	}{
		{"copying", func() error { return root.copyOver(t.Context()) }},
		{"copied", func() error { return errors.Join(state.copyOver(t.Context()), catchUp(t.Context(), root)) }},
		{"root renamed", root.put},
		{"state renamed", state.put},
		{"state's own", func() error { return adopt(t.Context(), to) }},
		{"adopted", func() error { return root.note(true) }},
		{"state removed", func() error { return os.RemoveAll(from.State) }},
		{"root removed", func() error { return os.RemoveAll(from.Root) }},
	} {
		if err := stage.do(); err != nil {
			t.Fatal(err)
		}
		if stage.name == reached {
			return
		}
	}
	t.Fatal("there is no stage ", reached)
}
