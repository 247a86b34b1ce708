// Package remote speaks A2A with an agent elsewhere. It reads the card of the agent, sends it messages, and
// writes its artifacts into the directory of a run. What the agent sends is data: it can name no other host.
package remote

import (
	"errors"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

// A Card is what an agent says of itself.
type Card struct {
	*a2a.AgentCard
	At *a2a.AgentInterface // where the agent gets its messages
}

// ErrCard is wrapped by the errors about a card that is there and can't be used.
var ErrCard = errors.New("the card of the agent can't be used")
