package exit

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// CheckArgs gives wrong arguments of a command and its subcommands the exit code of
// wrong usage.
func CheckArgs(cmd *cobra.Command) {
	cmd.Args = usageArgs(cmd.Args)
	for _, sub := range cmd.Commands() {
		CheckArgs(sub)
	}
}

// usageArgs gives wrong arguments the exit code of wrong usage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := cmd.ValidateFlagGroups() // cobra checks later, without an exit code
		if err == nil && check != nil {
			err = check(cmd, args)
		}
		if err != nil {
			return With(Usage, "%w; see %s --help", plainCount(err, len(args), cmd.UseLine()), cmd.CommandPath())
		}
		return nil
	}
}

// plainCount says in words that a command line has too few or too many arguments, for an
// error of cobra about their number. Other errors stay as they are.
func plainCount(err error, given int, usage string) error {
	want := 0
	usage = strings.TrimSuffix(usage, " [flags]")
	if _, other := fmt.Sscanf(err.Error(), "requires at least %d arg", &want); other == nil {
		return fmt.Errorf("an argument is missing; usage: %s", usage)
	}
	_, other := fmt.Sscanf(err.Error(), "accepts %d arg", &want)
	switch {
	case other != nil:
		return err
	case given < want:
		return fmt.Errorf("an argument is missing; usage: %s", usage)
	}
	return fmt.Errorf("too many arguments; usage: %s", usage)
}
