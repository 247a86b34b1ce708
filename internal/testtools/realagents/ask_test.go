package realagents_test

import (
	"testing"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

func TestAskPrintsTheAnswerAndTheResultHasTokensCostAndSession(t *testing.T) {
	forEach(t, func(t *testing.T, b *box) {
		b.plain()
		b.serve()
		reply := fakemodel.Text("The answer is 42.")
		reply.Usage = fakemodel.Usage{Input: 1200, Output: 340}
		b.model.Script(reply)
		s := b.must(b.mailboxd(b.work, "ask", b.program.name, "What is the answer?", "--wait"))
		if s.out != "The answer is 42.\n" {
			t.Errorf("ask printed %q; want the answer", s.out)
		}
		r := b.ask("And again?")
		if r.Status != "ok" || r.Output.Session == "" || r.Review.Required {
			t.Errorf("result = %+v; want ok with a session and nothing to review", r)
		}
		if r.Cost.Tokens != 1540 || r.Cost.Cents != b.program.cents {
			t.Errorf("cost = %+v; want 1540 tokens, %d cents", r.Cost, b.program.cents)
		}
		if got := len(b.model.Requests()); got != 2 {
			t.Errorf("the model was asked %d times; want 2", got)
		}
	})
}
