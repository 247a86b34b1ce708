package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func TestARunKeepsTheTermsItWasAdmittedWith(t *testing.T) {
	tokens := int64(3000)
	for name, terms := range map[string]task.Terms{
		"none":     {},
		"no tools": {Tools: []string{}},
		"all": {
			Tools: []string{"http"}, Deadline: noon, Timeout: time.Minute,
			Budget:   envelope.Budget{Tokens: &tokens},
			Accounts: []task.Account{{Owner: "requester:r", Limit: envelope.Budget{Tokens: &tokens}}},
			Approval: envelope.ApprovalPost, Approver: "sre", Levels: envelope.Levels{envelope.ControlRole: envelope.LevelDaemon},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := open(t)
			seq := add(t, l, named("t1", 1, task.Queued))[0]
			update(t, l, func(tx *ledger.Tx) error {
				return tx.StartRun(task.Run{Task: seq, Attempt: 1, ID: "r1", Intent: noon, Terms: terms})
			})
			runs, err := l.Runs(t.Context(), seq)
			if err != nil || len(runs) != 1 {
				t.Fatalf("Runs() = %v, %v; want the one", runs, err)
			}
			if diff := cmp.Diff(terms, runs[0].Terms); diff != "" {
				t.Errorf("terms were (-) and are (+):\n%s", diff)
			}
		})
	}
}
