package api

import (
	"context"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/client"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
	"mailboxd/internal/view"
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
		rows, err := b.Ledger.Tasks(ctx, page)
		if err != nil {
			return nil, err
		}
		tasks, err := b.requested(ctx, rows)
		if err != nil {
			return nil, err
		}
		for _, t := range tasks {
			if !matches(t, words, f.Labels) {
				continue
			}
			if found = append(found, t); len(found) == f.Limit {
				return found, nil
			}
		}
		if len(rows) < searchPage {
			return found, nil
		}
		page.AfterSeq = rows[len(rows)-1].Seq
	}
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

// requested returns tasks with what their requests say of them. A request that is too old
// to be kept says nothing.
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
		tasks[i] = viewOf(row)
		if raw := requests[row.Seq]; raw != nil {
			t, _ := dialect.DecodeTask(row.Dialect, raw, envelope.Legacy)
			tasks[i].Description, tasks[i].Labels = t.Description, t.Labels()
		}
	}
	return tasks, nil
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
	near, err := b.Ledger.NeighboursOf(ctx, ids)
	if err != nil {
		return err
	}
	last, err := b.Ledger.LastSeq(ctx)
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
	}
}
