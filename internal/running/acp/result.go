package acp

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A result is the last line that a host prints.
type result struct {
	Type    string   `json:"type"` // result
	Status  string   `json:"status"`
	Text    string   `json:"text"`
	Session string   `json:"session_id"`
	Stop    string   `json:"stop_reason"`
	Tokens  *int64   `json:"tokens,omitzero"`
	Cost    *money   `json:"cost,omitzero"`
	Error   *Failure `json:"error,omitzero"`
}

// money is a price in a result.
type money struct {
	Amount   jsontext.Value `json:"amount"`
	Currency string         `json:"currency"`
}

// answer prints the result of the run, and returns its error.
func (h *host) answer(stop string, err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := result{
		Type: "result", Status: "ok", Text: string(h.said.text), Session: h.session, Stop: stop, Tokens: h.said.tokens,
	}
	if amount := h.said.cost.amount; amount != nil {
		if e := h.said.earlier; e.amount != nil && e.currency == h.said.cost.currency {
			amount = new(big.Rat).Sub(amount, e.amount)
		}
		r.Cost = &money{jsontext.Value(amount.FloatString(6)), h.said.cost.currency}
	}
	if err != nil {
		r.Status, r.Error = "error", failureOf(err)
		err = r.Error
	}
	text, wrong := json.Marshal(r, lenient)
	if wrong == nil {
		_, wrong = h.opts.Stdout.Write(append(text, '\n'))
	}
	if wrong != nil {
		return fmt.Errorf("write the answer: %w", wrong)
	}
	return err
}

// failureOf returns the failure that an error is.
func failureOf(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if errors.Is(err, context.Canceled) {
		return failure(kindCancelled, "the run was ended before the agent was done")
	}
	return failure(kindInternal, "%v", err)
}
