package mailbox_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/mailbox"
)

// next returns the next batch, and fails unless it has these lines.
func (r *reader) next(texts ...string) mailbox.Batch {
	r.t.Helper()
	batch, err := r.Next()
	must(r.t, err)
	if diff := cmp.Diff(texts, raws(batch.Lines)); diff != "" {
		r.t.Fatalf("next lines (-want +got):\n%s", diff)
	}
	return batch
}

// wantAhead fails unless the batch after the pending one has these lines.
func (r *reader) wantAhead(texts ...string) mailbox.Batch {
	r.t.Helper()
	batch, ok := r.Ahead()
	if diff := cmp.Diff(texts, raws(batch.Lines)); diff != "" || ok != (len(texts) > 0) {
		r.t.Fatalf("Ahead = %v; lines (-want +got):\n%s", ok, diff)
	}
	return batch
}

var byTwo = mailbox.TailOptions{BatchLines: 2}

func TestLinesReadAheadComeNext(t *testing.T) {
	box := open(t)
	write(t, box.TasksDir()+"/x.jsonl", "a\nb\nc\nd\ne\n")
	r := tail(t, box, byTwo)
	r.wantAhead()
	first := r.next("a", "b")
	ahead := r.wantAhead("c", "d")
	r.Done(first)
	second := r.next("c", "d")
	if diff := cmp.Diff(ahead, second); diff != "" {
		t.Errorf("Next is not what Ahead was (-ahead +next):\n%s", diff)
	}
	r.wantAhead("e")
	r.Done(second)
	third := r.next("e")
	r.wantAhead()
	r.Done(third)
	r.want()
}

func TestABatchThatIsNotDoneComesBeforeLinesReadAhead(t *testing.T) {
	box := open(t)
	write(t, box.TasksDir()+"/x.jsonl", "a\nb\nc\n")
	r := tail(t, box, byTwo)
	r.next("a", "b")
	r.wantAhead("c")
	first := r.next("a", "b")
	r.wantAhead("c")
	r.Done(first)
	r.want("c")
}

func TestNothingIsReadAheadOfAnotherFilesTurn(t *testing.T) {
	box := open(t)
	write(t, box.TasksDir()+"/x.jsonl", "a\nb\nc\n")
	write(t, box.TasksDir()+"/y.jsonl", "d\n")
	r := tail(t, box, byTwo)
	first := r.next("a", "b")
	r.wantAhead()
	r.Done(first)
	r.want("d", "c")
}

func TestLinesReadAheadCountOnlyWhileTheFileHasThem(t *testing.T) {
	for name, test := range map[string]struct {
		now  string
		want []string
	}{
		"cut short":    {"a\nb\n", nil},
		"other lines":  {"a\nb\nC\nD\nE\n", []string{"C", "D", "E"}},
		"other bytes":  {"A\nB\nC\nD\nE\n", []string{"A", "B", "C", "D", "E"}},
		"more of them": {"a\nb\nc\nd\ne\nf\n", []string{"c", "d", "e", "f"}},
	} {
		t.Run(name, func(t *testing.T) {
			box := open(t)
			write(t, box.TasksDir()+"/x.jsonl", "a\nb\nc\nd\ne\n")
			r := tail(t, box, byTwo)
			first := r.next("a", "b")
			r.wantAhead("c", "d")
			write(t, box.TasksDir()+"/x.jsonl", test.now)
			r.Done(first)
			r.want(test.want...)
		})
	}
}

func TestALineWithoutAnEndIsReadWhenItHasOneAlsoAhead(t *testing.T) {
	box := open(t)
	write(t, box.TasksDir()+"/x.jsonl", "a\nb\nc")
	r := tail(t, box, byTwo)
	first := r.next("a", "b")
	r.wantAhead()
	add(t, box.TasksDir()+"/x.jsonl", "c\nd\n")
	r.Done(first)
	r.want("cc", "d")
}

func TestAFileThatGrowsAfterItWasReadAheadToItsEndIsReadOn(t *testing.T) {
	box := open(t)
	write(t, box.TasksDir()+"/x.jsonl", "a\nb\nc\n")
	r := tail(t, box, byTwo)
	first := r.next("a", "b")
	r.wantAhead("c")
	add(t, box.TasksDir()+"/x.jsonl", "d\n")
	time.Sleep(10 * time.Millisecond) // another look at the files is due then
	r.Done(first)
	r.want("c", "d")
	r.want()
}
