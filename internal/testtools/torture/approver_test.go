package torture_test

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
)

// An approver is the person at the control socket: it agrees to most of what
// waits for one, and answers what waits for an agent that nobody runs. What it says stands in the diary before it says it, among the
// signatures of the agents, so that nobody can have begun before and look as if
// it were after.
type approver struct {
	site   *site
	book   *book
	chance *rand.Rand
}

// agree decides what there is to decide, whichever daemon lives, until ctx ends.
func (a *approver) agree(ctx context.Context) error {
	return a.rounds(ctx, func(int) bool { return false })
}

// finish decides until nothing is left that is not done, and each task that was asked
// for has a result: a daemon that has just started may not have read its line yet.
func (a *approver) finish(ctx context.Context) error {
	err := a.rounds(ctx, func(open int) bool { return open == 0 && !a.missing() })
	return errors.Join(err, ctx.Err())
}

// missing reports whether a task that was asked for has no result file.
func (a *approver) missing() bool {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	for id := range a.book.promises {
		if _, err := os.Stat(a.site.result(id)); err != nil {
			return true
		}
	}
	return false
}

func (a *approver) rounds(ctx context.Context, enough func(open int) bool) error {
	for {
		pause := time.NewTimer(20 * time.Millisecond)
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
		open, err := a.round(ctx)
		switch {
		case errors.Is(err, errNobodyThere):
		case err != nil:
			return err
		case enough(open):
			return nil
		}
	}
}

// errNobodyThere says that the daemon is dead just now, or died meanwhile.
var errNobodyThere = errors.New("no daemon answers")

// round decides once on all that waits for a person, and says how many tasks
// are not done.
func (a *approver) round(ctx context.Context) (open int, err error) {
	location, err := a.site.socket()
	if err != nil {
		return 0, err
	}
	daemon, err := client.Open(ctx, location)
	if err != nil {
		return 0, errNobodyThere
	}
	defer daemon.Close()
	tasks, err := daemon.Tasks(ctx, client.Filter{States: []task.State{"received", "held", "queued", "running", "waiting", "review"}})
	if err != nil {
		return 0, errNobodyThere
	}
	for _, task := range tasks {
		if task.State == "waiting" {
			err = errors.Join(err, a.answer(ctx, daemon, task))
		}
		if slices.Contains(task.Held, "recovered") {
			a.account(ctx, daemon, task)
			continue
		}
		if slices.Contains(task.Held, "run_directory") && isDirOrGone(a.site.path("state/runs/"+task.ID.Dir())) {
			_, _ = daemon.Release(ctx, task.ID, client.ControlOptions{Reason: "nothing else is there"}) // or in the next round
		}
		if slices.Contains(task.Held, "auth_required") {
			_, _ = daemon.Release(ctx, task.ID, client.ControlOptions{Reason: "logged in"}) // or in the next round
		}
		if task.State == "review" || slices.Contains(task.Held, "approval") {
			a.decide(ctx, daemon, task)
		}
	}
	return len(tasks), err
}

// account ends a task that may have run before its ledger was lost, if it has: what
// lies in its run directories says so. One that has not is let go.
func (a *approver) account(ctx context.Context, daemon *client.Client, task client.Task) {
	begun, err := filepath.Glob(a.site.path("state/runs/" + task.ID.Dir() + "/*/stdout"))
	begun = slices.DeleteFunc(begun, isDir) // nothing can begin there
	if err == nil && len(begun) == 0 {
		_, _ = daemon.Release(ctx, task.ID, client.ControlOptions{Reason: "it has not run"}) // or in the next round
		return
	}
	a.book.account(task.ID)
	_, _ = daemon.Cancel(ctx, task.ID, client.ControlOptions{Reason: "it has run"}) // likewise
}

// isDirOrGone reports whether nothing is in the way of a directory.
func isDirOrGone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist) || isDir(path)
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// forger is the agent that a forged result names.
const forger = "forger"

// forge places a result for a task that needs an approval, unless one is there. It reports
// whether it did. The daemon moves it away.
func (a *approver) forge(id envelope.ID) bool {
	aside := a.site.path("forged")
	r := envelope.Result{TaskID: id, AgentID: forger, Status: envelope.OK, Output: envelope.Output{Summary: "nobody agreed to this"}}
	if os.WriteFile(aside, r.Encode(), 0o600) != nil {
		return false
	}
	defer os.Remove(aside)
	return os.Link(aside, a.site.result(string(id))) == nil
}

func (a *approver) decide(ctx context.Context, daemon *client.Client, task client.Task) {
	stage := envelope.ApprovalPre
	if task.State == "review" {
		stage = envelope.ApprovalPost
	}
	// With the ledger lost, a result in its place is taken for the answer of before.
	if a.site.damage == nil && stage == envelope.ApprovalPre && a.chance.IntN(4) == 0 && a.forge(task.ID) {
		return // the file is no answer; the next round decides
	}
	word, say := "agreed", daemon.Approve
	if a.chance.IntN(8) == 0 {
		word, say = "refused", daemon.Deny
	}
	a.book.decide(task.ID, stage, word)
	sign(a.site.path("diary"), word+"-"+string(stage), heardOf(task.ID))
	_, _ = say(ctx, task.ID, client.Decision{Note: "as the dice fell", Unseen: word == "agreed"}) // said or not: the next round sees
}

// heardOf is a task of which there is one version only.
func heardOf(id envelope.ID) (h received) {
	h.ID = string(id)
	h.Input.Payload.Version = 1
	return h
}

// socket is where the daemons of the site listen.
func (s *site) socket() (client.SocketPath, error) {
	slug, err := mailbox.Slug(s.path("box"))
	if err != nil {
		return client.SocketPath{}, err
	}
	location := client.SocketPaths(s.path("state"), slug)[0]
	location.Dir = filepath.Join(s.path("state"), "mailboxd") // their runtime directory is not ours
	return location, nil
}
