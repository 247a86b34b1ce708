package api

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// A question is what a person was asked about a revision of a task.
type question struct {
	revision int
	asked    task.Consent
	request  jsontext.Value // as it came; nil if it isn't kept
}

// changed returns the error of a decision about another question than the one that is open: it
// says what has changed since.
func (d *Server) changed(ctx context.Context, verb string, id envelope.ID, seen string) error {
	again := "; look at it again: " + view.Command("show", id)
	row, asked, _, err := d.engine.Question(ctx, verb, id, seen)
	if err != nil {
		return err
	}
	now := question{revision: row.Revision, asked: asked}
	if now.request, err = d.records.requestText(ctx, row.Seq); err != nil {
		return err
	}
	before, found, err := d.records.questionOf(ctx, id, seen)
	if err != nil {
		return err
	}
	if !found {
		return &client.Error{Kind: client.Conflict, Message: fmt.Sprintf("%s %s: no question about it has the digest %.64q%s", verb, id, seen, again)}
	}
	return &client.Error{Kind: client.Conflict, Message: fmt.Sprintf("%s %s: what is asked has changed: %s%s", verb, id, before.difference(now), again)}
}

// questionOf returns the latest question about a task with a digest, or with one that begins so.
func (b *Records) questionOf(ctx context.Context, id envelope.ID, digest string) (found question, ok bool, err error) {
	revisions, err := b.revisions(ctx, id)
	if err != nil {
		return question{}, false, err
	}
	for _, row := range revisions {
		consents, err := b.Ledger.Approvals(ctx, row.Seq)
		if err != nil {
			return question{}, false, err
		}
		for _, c := range consents {
			if len(digest) >= task.ShortDigest && strings.HasPrefix(c.Digest, digest) {
				found, ok = question{revision: row.Revision, asked: c}, true
				if found.request, err = b.requestText(ctx, row.Seq); err != nil {
					return question{}, false, err
				}
			}
		}
	}
	return found, ok, nil
}

// requestText returns the request of a revision as it came; nil if it isn't kept, or is no JSON.
func (b *Records) requestText(ctx context.Context, seq int64) (jsontext.Value, error) {
	raw, err := b.Ledger.Raw(ctx, seq)
	if errors.Is(err, ledger.ErrUnknown) || err == nil && !jsontext.Value(raw).IsValid() {
		return nil, nil
	}
	return raw, err
}

// difference says what has changed from one question to another.
func (q question) difference(now question) string {
	text := task.Difference(q.members(), now.members())
	switch {
	case text != "":
		return text
	case q.asked.Stage == envelope.ApprovalPost && now.asked.Stage == envelope.ApprovalPost:
		return "the answer is another one"
	}
	return "the same is asked again"
}

// members returns the parts of a question as one object. The content of the request stands for its
// hash, if it is kept.
func (q question) members() jsontext.Value {
	all := map[string]any{}
	if q.asked.Plan != nil {
		plan := map[string]jsontext.Value{}
		if json.Unmarshal(q.asked.Plan, &plan, jsontext.AllowInvalidUTF8(true)) == nil {
			for name, value := range plan {
				all[name] = value
			}
		}
	}
	if q.request != nil {
		all["request"] = q.request
	}
	all["revision"], all["stage"] = q.revision, q.asked.Stage
	text, err := json.Marshal(all, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return nil
	}
	return text
}
