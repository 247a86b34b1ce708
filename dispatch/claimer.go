package dispatch

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"mailboxd/dispatch/store"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// A Claimer is the program that claims a task. When it has ended, another
// program of the same name can claim the task again before the lease is over.
// The zero value has no name: what it claims, it keeps until the lease is over.
type Claimer struct {
	Name    string
	Process runner.Process // zero: nobody can tell whether it has ended
}

// token returns a new secret for a lease. It names the claimer, so that a
// restart of the daemon does not forget who has the lease.
func (c Claimer) token() string {
	secret := uuid.NewString()
	if c.Name == "" || c.Process.PID == 0 {
		return secret
	}
	return fmt.Sprintf("%s %d %d %s %s", secret, c.Process.PID, c.Process.Start, c.Process.Boot, c.Name)
}

// claimerOf returns the claimer that a token names; zero for none.
func claimerOf(token string) Claimer {
	parts := strings.SplitN(token, " ", 5)
	if len(parts) < 5 {
		return Claimer{}
	}
	pid, err := strconv.Atoi(parts[1])
	start, failed := strconv.ParseUint(parts[2], 10, 64)
	if err != nil || failed != nil {
		return Claimer{}
	}
	return Claimer{Name: parts[4], Process: runner.Process{PID: pid, Start: start, Boot: parts[3]}}
}

// claimable returns the oldest task that a claimer may have, inside a
// transaction, and whether there is one. What a program of the same name has
// claimed and left comes first.
func claimable(tx *store.Transaction, agent string, who Claimer, now time.Time) (task.Task, bool, error) {
	if who.Name == "" {
		return tx.Unclaimed(agent, now)
	}
	claimed, err := tx.Claimed(agent, now)
	if err != nil {
		return task.Task{}, false, err
	}
	for _, row := range claimed {
		if !row.Latest || store.IsPast(row.Deadline, now) {
			continue // nobody is to begin with it any more
		}
		was, err := tx.Delivery(row.Seq)
		if err != nil {
			return task.Task{}, false, err
		}
		if last := claimerOf(was.Lease); last.Name == who.Name && !runner.Alive(last.Process) {
			return row, true, nil
		}
	}
	return tx.Unclaimed(agent, now)
}
