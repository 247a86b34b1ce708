package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
)

// forEach calls do with each argument. Of several, an error does not keep the others from
// it: it is printed at once, and the exit code is the highest one.
func forEach(cmd *cobra.Command, args []string, do func(arg string) error) error {
	var worst error
	for _, arg := range args {
		err := do(arg)
		if cmd.Context().Err() != nil {
			return errors.Join(worst, err)
		}
		if err == nil {
			continue
		}
		if err = withExitCode(err); len(args) > 1 {
			err = &exit.Error{Code: report(cmd.ErrOrStderr(), err)}
		}
		if worst == nil || exit.CodeOf(err) > exit.CodeOf(worst) {
			worst = err
		}
	}
	return worst
}

// A chosen task of a command that changes it.
type chosen struct{ exact bool }

// add adds the flag.
func (c *chosen) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.exact, "exact", false, "each ID is a whole id, also if other ids begin with it")
}

func (c *chosen) find(ctx context.Context, r *reader.Reader, arg string) (envelope.ID, error) {
	return r.FindToChange(ctx, arg, c.exact)
}
