package gateway

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"mailboxd/internal/access/client"
)

// Pages of a list, as the protocol has them.
const (
	defaultPage = 50
	largestPage = 100
)

// ListTasks lists the tasks of the sender, the newest first.
func (s *server) ListTasks(ctx context.Context, req *a2a.ListTasksRequest) (*a2a.ListTasksResponse, error) {
	c, err := callIn(ctx)
	if err != nil {
		return nil, err
	}
	size := cmp.Or(req.PageSize, defaultPage)
	before := int64(0)
	if req.PageToken != "" {
		if before, err = strconv.ParseInt(req.PageToken, 10, 64); err != nil || before <= 0 {
			return nil, invalid("pageToken: is not one of this list")
		}
	}
	if size < 1 || size > largestPage {
		return nil, invalid("pageSize: must be from 1 to %d", largestPage)
	}
	answer := &a2a.ListTasksResponse{Tasks: []*a2a.Task{}, PageSize: size}
	rows, err := []client.Task(nil), error(nil)
	if req.Status == "" && req.ContextID == "" && req.StatusTimestampAfter == nil {
		rows, answer.TotalSize, err = s.page(ctx, c, before, size+1)
	} else {
		rows, err = s.matching(ctx, c, req)
		answer.TotalSize = len(rows)
		rows = slices.DeleteFunc(rows, func(t client.Task) bool { return before > 0 && t.Seq >= before })
	}
	if err != nil {
		return nil, err
	}
	if len(rows) > size {
		rows, answer.NextPageToken = rows[:size], strconv.FormatInt(rows[size-1].Seq, 10)
	}
	for _, row := range rows {
		t, err := s.get(ctx, c, a2a.TaskID(row.ID))
		if err != nil {
			return nil, err
		}
		if !req.IncludeArtifacts {
			t.Artifacts = nil
		}
		answer.Tasks = append(answer.Tasks, t)
	}
	return answer, nil
}

// page returns some of the tasks of the sender, the newest first, and how many there are in all.
func (s *server) page(ctx context.Context, c call, before int64, size int) (rows []client.Task, total int, err error) {
	filter := client.Filter{Requester: c.sender.Name, NewestFirst: true, After: before, Limit: size}
	err = s.daemon.use(ctx, func(d daemon) (err error) {
		if rows, err = d.Tasks(ctx, filter); err == nil {
			total, err = d.Count(ctx, filter)
		}
		return err
	})
	if err != nil {
		return nil, 0, s.failure(err)
	}
	return rows, total, nil
}

// matching returns the tasks of the sender that a request asks for, the newest first.
func (s *server) matching(ctx context.Context, c call, req *a2a.ListTasksRequest) (rows []client.Task, err error) {
	filter := client.Filter{Requester: c.sender.Name, NewestFirst: true}
	err = s.daemon.use(ctx, func(d daemon) (err error) {
		rows, err = d.Tasks(ctx, filter)
		return err
	})
	if err != nil {
		return nil, s.failure(err)
	}
	var failed error
	rows = slices.DeleteFunc(rows, func(t client.Task) bool {
		state, _ := stateOf(t)
		switch {
		case failed != nil:
			return true
		case req.Status != "" && state != req.Status:
			return true
		case req.ContextID == "" && req.StatusTimestampAfter == nil:
			return false
		}
		file, err := s.own(ctx, c, a2a.TaskID(t.ID))
		failed = err
		return err != nil || req.ContextID != "" && contextOf(file) != req.ContextID ||
			req.StatusTimestampAfter != nil && !changedAt(file).After(*req.StatusTimestampAfter)
	})
	return rows, failed
}

// changedAt is when a task last changed.
func changedAt(file client.TaskDetails) time.Time {
	if n := len(file.Events); n > 0 {
		return file.Events[n-1].Time
	}
	return file.Task.Received
}
