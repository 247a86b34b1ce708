package core

import "mailboxd/envelope"

// Revisions returns the tasks of an id, the latest last.
func (s *State) Revisions(id envelope.ID) []*Task { return s.ids[id] }
