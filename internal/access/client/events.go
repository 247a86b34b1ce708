package client

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
)

// maxEvent bounds one event of a stream: a requester's line may be quoted in it.
const maxEvent = 16 << 20

// Events returns up to limit events after a seq, oldest first: those of one
// task, or everybody's when id is "".
func (c *Client) Events(ctx context.Context, id envelope.ID, after int64, limit int) ([]Event, error) {
	q := eventQuery(id, after)
	q.Set("limit", strconv.Itoa(limit))
	var list EventList
	err := c.get(ctx, Base+"/events/list", q, &list)
	return list.Events, err
}

// Follow calls each with every event after a seq, and then with those that
// come, until ctx ends, each fails, or the daemon stops, which is ErrDown. A
// negative seq asks for what comes from now on.
func (c *Client) Follow(ctx context.Context, id envelope.ID, after int64, each func(Event) error) error {
	path := Base + "/events?" + eventQuery(id, after).Encode()
	response, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue // an id or a name, which the data has as well, or a comment
		}
		var e Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return fmt.Errorf("read event: %w", err)
		}
		if err := each(e); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w any more", ErrDown)
}

func eventQuery(id envelope.ID, after int64) url.Values {
	q := url.Values{}
	if after >= 0 {
		q.Set("after", strconv.FormatInt(after, 10))
	}
	if id != "" {
		q.Set("task", string(id))
	}
	return q
}
