package config

import (
	"fmt"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"mailboxd/internal/access/client"
)

// GroupSocket returns the socket for approvers of a group, which is zero without such a group.
// A group that this machine doesn't have is an error.
func (c *Config) GroupSocket() (client.SocketPath, error) {
	if c.ApproversGroup == "" {
		return client.SocketPath{}, nil
	}
	group, err := user.LookupGroup(c.ApproversGroup)
	if err != nil {
		return client.SocketPath{}, fmt.Errorf("approvers_group: no group %q on this machine", c.ApproversGroup)
	}
	id, err := strconv.Atoi(group.Gid)
	if err != nil {
		return client.SocketPath{}, fmt.Errorf("approvers_group: %w", err)
	}
	path := c.Resolve(c.ApproversSocket)
	return client.SocketPath{Dir: filepath.Dir(path), Name: filepath.Base(path), Group: id}, nil
}

// checkApproversGroup checks that a group of approvers has a socket in a directory of its own.
func (c *Config) checkApproversGroup() []error {
	path := c.Resolve(c.ApproversSocket)
	switch {
	case c.ApproversGroup == "" && path == "":
		return nil
	case c.ApproversGroup == "":
		return []error{wrong("approvers_group", "required with approvers_socket: the group whose members may connect")}
	case path == "":
		return []error{wrong("approvers_socket", "required with approvers_group: a path in a directory that the group can reach, such as /srv/mailboxd/approvers.sock")}
	case c.ApproversGroup == "root":
		return []error{wrong("approvers_group", "must not be the group of root")}
	case len(c.Approvers) == 0:
		return []error{wrong("approvers_group", "without approvers no member of the group may decide anything: name them in approvers or approvers_file")}
	}
	if err := expanded("approvers_socket", path); err != nil {
		return []error{err}
	}
	for what, dir := range map[string]string{"the mailbox": c.Root, "the state directory": c.StateDir} {
		if inside, err := filepath.Rel(dir, path); dir != "" && err == nil && inside != ".." && !strings.HasPrefix(inside, "../") {
			return []error{wrong("approvers_socket", "%s is inside %s %s: give it a directory of its own", path, what, dir)}
		}
	}
	return nil
}
