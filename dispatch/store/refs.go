package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
)

// checkRefs judges the references of a task without opening the files (AINL-40). A missing file
// may appear later, so it is only a warning unless the agent requires it.
func (rd *Reader) checkRefs(t envelope.Task) envelope.Findings {
	if len(t.Refs) == 0 {
		return nil
	}
	rule := rd.Agents.Refs(t.Agent)
	if rule.Mode == envelope.Off {
		return nil
	}
	var findings envelope.Findings
	artifacts := artifactReader{rd}
	for i, ref := range t.Refs {
		if f, is := artifacts.finding(ref.URI, dialect.RefField(t, i), i); is {
			if rule.Mode == envelope.Warn {
				f.Kind = ""
			}
			if f.Message != "" {
				findings = append(findings, f)
			}
			continue
		}
		err := rd.Box.CheckRef(ref.URI, rd.Opts.RefRoots)
		if err == nil {
			continue
		}
		f := envelope.Finding{Field: dialect.RefField(t, i), Message: err.Error()}
		switch {
		case rule.Mode == envelope.Warn:
		case errors.Is(err, mailbox.ErrOutside) || errors.Is(err, mailbox.ErrNotRegular):
			f.Kind = envelope.SecurityViolation
		case rule.Required:
			f.Kind = envelope.ContextUnavailable
		}
		findings = append(findings, f)
	}
	return findings
}

// checkCallback refuses a task when the file at its callback path can't take a result line, or
// is the inbox of an agent (AINL-51).
func (rd *Reader) checkCallback(t envelope.Task) (findings envelope.Findings) {
	if file := t.Callback.FileAppend; file != "" {
		err := rd.CheckNoInbox(file)
		if err == nil {
			err = rd.Box.CheckCallbackFile(file)
		}
		if err != nil {
			findings = append(findings, envelope.Finding{Kind: envelope.SecurityViolation, Field: "callback.file_append", Message: err.Error()})
		}
	}
	if queue := t.Callback.Queue; queue != "" {
		if err := rd.Box.CheckQueueFile(queue); err != nil {
			findings = append(findings, envelope.Finding{Kind: envelope.SecurityViolation, Field: "callback.queue", Message: err.Error()})
		}
	}
	return findings
}

// CheckNoInbox refuses the path of a callback that is the inbox of an agent.
func (rd *Reader) CheckNoInbox(path string) error {
	if rd.Agents.Protocol.Agents == nil {
		return nil
	}
	for _, agent := range rd.Agents.Protocol.Agents() {
		if strings.EqualFold(rd.Agents.Inbox(agent).File, path) {
			return fmt.Errorf("must not be the inbox of the agent %q, which only mailboxd writes", agent)
		}
	}
	return nil
}

// CheckContext checks the context of a message: it opens the file and compares its hash
// (CLOWL-16). A missing file is acceptable when the message has an inline context too; a
// finding reports this, and the message is degraded (CLOWL-15, CLOWL-17). A path outside the
// roots is refused.
func (rd *Reader) CheckContext(m envelope.Message, agent string) (findings envelope.Findings, degraded bool) {
	ref := m.Context.Ref
	rule := rd.Agents.Refs(agent)
	if ref == "" || rule.Mode == envelope.Off {
		return nil, false
	}
	sum, err := sumRef(rd, ref)
	f := envelope.Finding{Field: "ctx.ref"}
	switch {
	case err == nil && (m.Context.Hash == "" || sum == m.Context.Hash):
		return nil, false
	case err == nil:
		f.Kind, f.Field, f.Message = envelope.ContextIntegrity, "ctx.hash", "is not that of what lies at "+ref
	case errors.Is(err, mailbox.ErrOutside):
		f.Kind, f.Message = envelope.SecurityViolation, err.Error()
	case errors.Is(err, mailbox.ErrTooLarge):
		f.Kind, f.Message = envelope.ContextTooLarge, err.Error()
	case m.Context.Inline != "":
		return envelope.Findings{{Field: f.Field, Message: err.Error() + "; ctx.inline is used instead"}}, true
	case errors.Is(err, mailbox.ErrNotRegular):
		f.Kind, f.Message = envelope.SecurityViolation, err.Error()
	default:
		f.Kind, f.Message = envelope.ContextUnavailable, err.Error()
	}
	if rule.Mode == envelope.Warn {
		f.Kind = ""
	}
	return envelope.Findings{f}, false
}

// sumRef returns the SHA-256 of a referenced file. That of an artifact is in its name, and is
// compared with the file before the run.
func sumRef(rd *Reader, ref string) (string, error) {
	digest, is := envelope.ArtifactDigest(ref)
	if !is {
		return rd.Box.SumRef(ref, rd.Opts.RefRoots)
	}
	return digest, artifactReader{rd}.check(context.Background(), digest)
}

// RequestOf decodes the kept request of a task again. It also checks the context again, which
// may have changed.
func (rd *Reader) RequestOf(row task.Task, raw []byte) (envelope.Task, envelope.Findings) {
	codec, foreign := dialect.Of(row.Dialect)
	if !foreign || row.Dialect == envelope.AINL {
		t, findings := envelope.DecodeTask(raw, rd.Opts.Reading)
		if t.Agent == envelope.Everybody {
			t.Agent, t.Routed = row.Agent, true
		}
		return t, findings
	}
	m, findings := codec.Decode(raw, rd.Opts.Reading)
	m.Request.Agent = row.Agent // one of the recipients, a substitute, or the chosen agent
	m.Request.Routed = m.Request.Clutch.Routed()
	if !findings.Refused() {
		context, degraded := rd.CheckContext(m, row.Agent)
		if findings = append(findings, context...); degraded {
			return m.Request.WithoutRef(m.Context.Ref), findings
		}
	}
	return m.Request, findings
}
