package client

import (
	"context"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"
)

// A Replay is what the ledger has of a run, as messages of Clutch.
type Replay struct {
	Run         string         `json:"run_id"`
	Messages    []StoreMessage `json:"messages"`
	Differences []string       `json:"differences,omitempty"` // between the messages and the tasks of the ledger
}

// A StoreMessage is a message with its place in the order of all events.
type StoreMessage struct {
	Seq      int64          `json:"seq"`
	Envelope jsontext.Value `json:"envelope"`
}

// Replay returns the messages of a run, which is named by its run_id or by one of its tasks.
func (c *Client) Replay(ctx context.Context, run string) (r Replay, err error) {
	return r, c.get(ctx, Base+"/clutch/replay", url.Values{"run_id": {run}}, &r)
}
