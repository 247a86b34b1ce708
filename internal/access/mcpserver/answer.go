package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/mailbox"
)

// maxResult is how large a result may be to be handed to a model, in bytes.
const maxResult = 1 << 20

// An answer says how a task ended, or that it has not and why.
type answer struct {
	TaskID   envelope.ID    `json:"task_id"`
	Finished bool           `json:"finished"`
	State    string         `json:"state"` // sent: the daemon has not read it yet
	Why      string         `json:"why,omitempty"`
	Result   jsontext.Value `json:"result,omitempty"`
}

// taskArgs are the arguments of a tool that is about one task.
type taskArgs struct {
	TaskID string `json:"task_id"`
}

// readResult answers at once.
func (s *server) readResult(ctx context.Context, _ call, in taskArgs) (answer, error) {
	id, err := taskID(in.TaskID)
	if err != nil {
		return answer{}, err
	}
	a, err := s.answer(ctx, id)
	if err == nil && !a.Finished {
		a.Why = s.why(ctx, a)
	}
	return a, err
}

// answer looks for the result of the latest revision of a task. What stands in
// its place until then answers an earlier one.
func (s *server) answer(ctx context.Context, id envelope.ID) (answer, error) {
	a := answer{TaskID: id, State: "sent"}
	if waits, err := s.outbox.waits(ctx, id); waits || err != nil {
		return a, err
	}
	row, known, err := s.latest(ctx, id)
	if err != nil {
		return a, err
	}
	if a.State = string(row.State); known && !row.ResultFinal {
		return a, nil
	}
	a.Result, err = s.result(id)
	switch gone := errors.Is(err, fs.ErrNotExist); {
	case gone && known:
		return a, nil // mailboxd serve puts it again
	case gone:
		return a, missing(id)
	}
	a.Finished, a.State = err == nil, string(task.Done)
	return a, err
}

// errMissing begins what is said of a task that nobody knows.
var errMissing = errors.New("no such task")

func missing(id envelope.ID) error {
	return fmt.Errorf("%w: %s; when it was sent just now, the daemon may not have read it yet", errMissing, id)
}

// result reads the result file of a task.
func (s *server) result(id envelope.ID) (jsontext.Value, error) {
	raw, err := mailbox.ReadResult(s.Root, id)
	path := filepath.Join(s.Root, "results", string(id)+".json")
	switch {
	case err != nil:
		return nil, err
	case len(raw) > maxResult:
		return nil, fmt.Errorf("the result of %s has %d bytes, too many to show here: read %s", id, len(raw), path)
	case !jsontext.Value(raw).IsValid():
		return nil, fmt.Errorf("%s is no result", path)
	}
	return raw, nil
}

// latest returns the latest revision of a task. Without a ledger, only its
// result file can tell.
func (s *server) latest(ctx context.Context, id envelope.ID) (row client.Task, known bool, err error) {
	err = s.Read(ctx, func(b *client.Client) error {
		if b == nil {
			return ledger.ErrUnknown
		}
		row, err = b.Latest(ctx, id)
		return err
	})
	if unknown(err) {
		return client.Task{}, false, nil
	}
	return row, err == nil, err
}

// unknown reports whether an error says that the ledger has no such task.
func unknown(err error) bool {
	said, ok := errors.AsType[*client.Error](err)
	return errors.Is(err, ledger.ErrUnknown) || ok && said.Kind == client.NoTask
}

// why says what a task that is not done waits for.
func (s *server) why(ctx context.Context, a answer) string {
	if a.State == "sent" {
		return "the daemon has not read it yet; is mailboxd serve running?"
	}
	var file client.TaskDetails
	err := s.Read(ctx, func(b *client.Client) (err error) {
		if b != nil {
			file, err = b.Details(ctx, a.TaskID)
		}
		return err
	})
	if err != nil {
		return "" // the answer is right without it
	}
	return file.Why
}
