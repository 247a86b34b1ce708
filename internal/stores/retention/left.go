package retention

import (
	"errors"
	"io/fs"
	"path/filepath"

	"mailboxd/mailbox"
)

// A collection is a Collected that is being made.
type collection struct {
	Collected
	left []mailbox.Left
}

// leave counts data of the state directory that can't be removed. The collection goes on.
func (c Collector) leave(k mailbox.Kept, cause error, gone *collection) {
	gone.leave(filepath.Join(c.State.Path(), k.Path), cause)
}

// leave counts data at an absolute path that can't be removed.
func (g *collection) leave(path string, cause error) {
	if named, ok := errors.AsType[*fs.PathError](cause); ok && named.Path == path {
		cause = named.Err
	}
	g.Left++
	if g.Cause == "" {
		g.Cause = path + ": " + cause.Error()
	}
	g.left = append(g.left, mailbox.Left{Path: path, Cause: cause.Error()})
}
