package exit

import (
	"fmt"
	"strings"
)

// PlainCount says in words that a command line has too few or too many arguments, for an
// error of cobra about their number. Other errors stay as they are.
func PlainCount(err error, given int, usage string) error {
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
