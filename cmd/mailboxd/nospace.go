package main

import (
	"errors"
	"fmt"
	"syscall"
)

// withSpaceHint adds to an error of a full disk, or quota, which directory
// needs room, and what in it can be freed.
func withSpaceHint(err error, dir, what string) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	return fmt.Errorf("%w; make room on the disk of %s: %s", err, dir, what)
}
