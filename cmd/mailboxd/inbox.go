package main

import (
	"reflect"
	"time"

	"mailboxd/dispatch/store"
)

// An inboxEntry is the inbox of an entry of agents that we do not run.
type inboxEntry struct {
	File  string        `mapstructure:"file"` // "": see findInbox
	Lease time.Duration `mapstructure:"lease"`
}

// inboxDefaults fill what an inbox leaves out.
func inboxDefaults() inboxEntry { return inboxEntry{Lease: 10 * time.Minute} }

// fillInbox is a decoding hook like fillAgent, for the inbox of an agent that has
// one.
func fillInbox(from, to reflect.Value) (any, error) {
	if to.Type() == reflect.TypeFor[inboxEntry]() && from.Kind() == reflect.Map {
		to.Set(reflect.ValueOf(inboxDefaults()))
	}
	return from.Interface(), nil
}

// findInbox says where the inbox of a member is that has one, if its entry does
// not: where its manifest does, or in a directory of its own (AINL-21).
func (m *member) findInbox() {
	in := m.binding.Inbox
	if in == nil || in.File != "" {
		return
	}
	if manifest := m.subject.Manifest; manifest != nil {
		in.File = manifest.Contact.InboxFile
	}
	if in.File == "" {
		in.File = "agents/" + m.binding.ID + "/inbox.jsonl"
	}
}

// inbox is where an agent fetches its tasks, if it does.
func (t *team) inbox(id string) store.Inbox {
	if in := t.binding(id).Inbox; in != nil {
		return store.Inbox(*in)
	}
	return store.Inbox{}
}
