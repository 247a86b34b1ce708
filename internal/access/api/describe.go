package api

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"unicode"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// searchPage is how many tasks a search reads at once.
const searchPage = 1000

// search lists the tasks that pass the filter, with its words and labels, which the ledger
// does not know: they are in the requests.
func (b *Records) search(ctx context.Context, f client.Filter) (found []client.Task, err error) {
	words := make([]string, len(f.Words))
	for i, word := range f.Words {
		words[i] = strings.ToLower(word)
	}
	page := filterOf(f)
	page.Limit = searchPage
	for {
		texts, err := b.Ledger.Texts(ctx, page)
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			if !mayMatch(text.Row, text.Request, words) {
				continue
			}
			t := described(text.Row, text.Request)
			if !matches(t, words, f.Labels) {
				continue
			}
			if found = append(found, t); len(found) == f.Limit {
				return b.whole(ctx, found)
			}
		}
		if len(texts) < searchPage {
			return b.whole(ctx, found)
		}
		page.AfterSeq = texts[len(texts)-1].Row.Seq
	}
}

// whole returns tasks with the fields of their rows. The tasks have their descriptions and labels
// already.
func (b *Records) whole(ctx context.Context, found []client.Task) ([]client.Task, error) {
	seqs := make([]int64, len(found))
	for i, t := range found {
		seqs[i] = t.Seq
	}
	rows, err := b.Ledger.TasksOf(ctx, seqs)
	if err != nil {
		return nil, err
	}
	for i, t := range found {
		if row, ok := rows[t.Seq]; ok {
			found[i] = viewOf(row)
			found[i].Description, found[i].Labels = t.Description, t.Labels
		}
	}
	return slices.DeleteFunc(found, func(t client.Task) bool { return t.State == "" }), nil // removed meanwhile
}

// mayMatch reports whether a task may have all words. It looks for them in the row and in the
// line of the request, which is much faster than to decode the line. The texts of an AINL line
// without escapes stand in the line as they are.
func mayMatch(row task.Task, raw []byte, words []string) bool {
	if row.Dialect != envelope.AINL && row.Dialect != "" || bytes.IndexByte(raw, '\\') >= 0 {
		return true
	}
	line := bytes.ToLower(raw)
	return !slices.ContainsFunc(words, func(word string) bool {
		ofSeveral := strings.ContainsFunc(word, func(r rune) bool { return r == '=' || unicode.IsSpace(r) })
		return !ofSeveral && !bytes.Contains(line, []byte(word)) && !slices.ContainsFunc(
			[]string{string(row.ID), row.Agent, row.Requester, row.Type}, func(text string) bool { return strings.Contains(strings.ToLower(text), word) })
	})
}

// matches reports whether a task has all words, which are lower-case, and all labels, as
// area=auth.
func matches(t client.Task, words, labels []string) bool {
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		if has, ok := t.Labels[key]; !ok || has != value {
			return false
		}
	}
	if len(words) == 0 {
		return true
	}
	texts := []string{string(t.ID), t.Agent, t.Requester, t.Type, strings.Join(strings.Fields(t.Description), " ")}
	for key, value := range t.Labels {
		texts = append(texts, key+"="+value)
	}
	for i, text := range texts {
		texts[i] = strings.ToLower(text)
	}
	for _, word := range words {
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, word) }) {
			return false
		}
	}
	return true
}

// requested returns tasks with the fields of their requests.
func (b *Records) requested(ctx context.Context, rows []task.Task) ([]client.Task, error) {
	seqs := make([]int64, len(rows))
	for i, row := range rows {
		seqs[i] = row.Seq
	}
	requests, err := b.Ledger.Requests(ctx, seqs)
	if err != nil {
		return nil, err
	}
	tasks := make([]client.Task, len(rows))
	for i, row := range rows {
		tasks[i] = described(row, requests[row.Seq])
	}
	return tasks, nil
}

// described returns a task with the fields of its request; nil adds none.
func described(row task.Task, raw []byte) client.Task {
	found := viewOf(row)
	if raw != nil {
		t, _ := dialect.DecodeTask(row.Dialect, raw, envelope.Legacy)
		found.Description, found.Labels = t.Description, t.Labels()
	}
	return found
}

// addShortIDs gives tasks with random ids their short ids.
func (b *Records) addShortIDs(ctx context.Context, tasks []client.Task) error {
	var ids []envelope.ID
	for _, t := range tasks {
		if view.IsRandom(t.ID) {
			ids = append(ids, t.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	near, last, err := b.Ledger.NeighboursOf(ctx, ids)
	for i, t := range tasks {
		if n, ok := near[t.ID]; ok {
			tasks[i].ShortID = view.ShortID(t.ID, n.Before, n.After, last)
		}
	}
	return err
}

func filterOf(f client.Filter) ledger.Filter {
	return ledger.Filter{
		States: f.States, Agent: f.Agent, Requester: f.Requester, Since: f.Since,
		AfterSeq: f.After, NewestFirst: f.NewestFirst, All: f.All, Limit: f.Limit, CallbackFailed: f.CallbackFailed,
		Statuses: f.Statuses, Kind: f.Kind, Type: f.Type, Reasons: f.Reasons,
	}
}
