package store

import (
	"math"
	"testing"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/operating/metrics"
)

func TestTheSumOfCostsDoesNotOverflow(t *testing.T) {
	most := int64(math.MaxInt64)
	ended := ranRun{agent: "a", run: &task.Run{Tokens: &most, USDCents: &most}}
	c := NewCounts(func(string) bool { return true })
	c.add(&Consequences{ran: []ranRun{ended, ended, ended}})
	c.Read(func(_ map[string]int64, _ map[EndedKey]int64, runs map[string]metrics.RunCounts) {
		if got := runs["a"]; got.Tokens != 3*task.MaxAmount || got.USDCents != 3*task.MaxAmount {
			t.Errorf("the sums are %+v; want three times the most that counts", got)
		}
	})
}
