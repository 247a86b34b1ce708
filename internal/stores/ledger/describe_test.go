package ledger_test

import (
	"reflect"
	"slices"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func TestNeighboursAndRequestsOfManyTasks(t *testing.T) {
	l := open(t)
	var ids []envelope.ID
	var seqs []int64
	for n := range 150 { // more than one statement has
		added := add(t, l, newTask(n))
		ids, seqs = append(ids, newTask(n).ID), append(seqs, added...)
	}
	near, last, err := l.NeighboursOf(t.Context(), append(slices.Clone(ids), "unknown"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	for i, id := range ids {
		var want ledger.Neighbours
		if i > 0 {
			want.Before = ids[i-1]
		}
		if i < len(ids)-1 {
			want.After = ids[i+1]
		}
		if near[id] != want {
			t.Errorf("neighbours of %s: %v; want %v", id, near[id], want)
		}
	}
	if got := near["unknown"].Before; got != ids[len(ids)-1] {
		t.Errorf("an unknown id comes after %q; want the last id", got)
	}
	requests, err := l.Requests(t.Context(), append(seqs, 4711))
	if err != nil || len(requests) != len(seqs) {
		t.Errorf("Requests = %d lines, %v; want %d", len(requests), err, len(seqs))
	}
	for _, seq := range seqs {
		want, err := l.Raw(t.Context(), seq)
		if err != nil || string(requests[seq]) != string(want) {
			t.Errorf("request %d = %q, %v; want %q", seq, requests[seq], err, want)
		}
	}
	rows, err := l.TasksOf(t.Context(), append(seqs, 4711))
	if err != nil || len(rows) != len(seqs) {
		t.Errorf("TasksOf = %d tasks, %v; want %d", len(rows), err, len(seqs))
	}
	texts, err := l.Texts(t.Context(), ledger.Filter{})
	if err != nil || len(texts) != len(seqs) {
		t.Errorf("Texts = %d texts, %v; want %d", len(texts), err, len(seqs))
	}
	for _, text := range texts {
		row, seq := rows[text.Row.Seq], text.Row.Seq
		want := task.Task{Seq: seq, ID: row.ID, Agent: row.Agent, Requester: row.Requester, Type: row.Type, Dialect: row.Dialect}
		if !reflect.DeepEqual(text.Row, want) || string(text.Request) != string(requests[seq]) {
			t.Errorf("the text of task %d is %+v; want the words of %+v and the request", seq, text, row)
		}
	}
	if last != slices.Max(seqs) {
		t.Errorf("the newest task is %d; want %d", last, slices.Max(seqs))
	}
}
