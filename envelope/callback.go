package envelope

import (
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// callback reads the further places for the result (AINL-50, AINL-51). The mailbox checks the
// facts of the file system, such as symbolic links.
func (r *request) callback(at int) {
	if !r.is(at, '{') {
		return
	}
	if queue := r.member(at, "queue"); r.is(queue, '"') {
		switch name := r.prose(queue); {
		case queueName.MatchString(name):
			r.task.Callback.Queue = name
		case strings.Contains(name, "/"):
			r.note(SecurityViolation, r.path(queue), "must be a name, not a path")
		default:
			r.refuse(queue, "must be 1 to 64 of the characters A-Z a-z 0-9 . _ -")
		}
	}
	if file := r.member(at, "file_append"); file != none {
		r.task.Callback.FileAppend = r.callbackFile(file)
	}
}

// callbackFile reads the path of a file for result lines.
func (r *request) callbackFile(at int) string {
	name := r.file(at)
	if IsInboxFile(name) {
		r.note(SecurityViolation, r.path(at), "must not be the inbox of a participant, which only mailboxd writes")
		return ""
	}
	return name
}

// IsInboxFile reports whether a slash-separated path below the root is that of an inbox, in
// upper or lower case: agents/<name>/inbox.jsonl. A configured inbox may have another path.
func IsInboxFile(name string) bool {
	elements := strings.Split(name, "/")
	return len(elements) == 3 && strings.EqualFold(elements[0], "agents") && strings.EqualFold(elements[2], "inbox.jsonl")
}

var queueName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// file reads the path of a writable file below the root.
func (c *check) file(at int) string {
	name := c.name(at)
	if name == "" {
		return ""
	}
	err := checkFile(name)
	switch {
	case errors.Is(err, errEscape):
		c.note(SecurityViolation, c.path(at), err.Error())
		return ""
	case err != nil:
		c.refuse(at, err.Error())
		return ""
	}
	return name
}

// ours are the directories that only the mailbox writes: a result that is appended to a file in
// tasks/ would come back as a task, without end.
var ours = []string{"tasks", "results", "rejected", ".mailboxd"}

// errEscape marks a path that leaves the root, by an attack or by mistake.
var errEscape = errors.New("must stay below the root")

func checkFile(name string) error {
	first, _, _ := strings.Cut(name, "/")
	elements := strings.Split(name, "/")
	switch {
	case path.IsAbs(name), slices.Contains(elements, ".."), path.Clean(name) == ".":
		return errEscape
	case !fs.ValidPath(name):
		return errors.New("must be a plain path such as \"agents/a/results.jsonl\"")
	case slices.ContainsFunc(ours, func(dir string) bool { return strings.EqualFold(dir, first) }):
		return escape("must not be in " + first + "/, which only the mailbox writes")
	case len(name) > 1024, slices.ContainsFunc(elements, func(e string) bool { return len(e) > 255 }):
		return errors.New("is longer than a file name can be")
	}
	return nil
}

// escape is an errEscape with a text of its own.
type escape string

func (e escape) Error() string        { return string(e) }
func (e escape) Is(target error) bool { return target == errEscape }
