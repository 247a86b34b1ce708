// Package remote speaks A2A with an agent elsewhere. It reads the card of the agent, sends it messages, and
// writes its artifacts into the directory of a run. What the agent sends is data: it can name no other host.
package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/running/dial"
)

// cardPath is where an agent has its card, below its address.
const cardPath = ".well-known/agent-card.json"

// maxCard limits a card, in bytes.
const maxCard = 1 << 20

// A Card is what an agent says of itself.
type Card struct {
	*a2a.AgentCard
	Digest string              // the SHA-256 of its canonical JSON, in hexadecimal
	At     *a2a.AgentInterface // where the agent gets its messages
	Signed bool                // a signature of the card verifies with the key that it names
}

// ErrCard is wrapped by the errors about a card that is there and can't be used.
var ErrCard = errors.New("the card of the agent can't be used")

// ReadCard reads the card of the agent at an address. The client follows no redirect.
func ReadCard(ctx context.Context, client *http.Client, at *url.URL) (Card, error) {
	text, err := get(ctx, client, at.JoinPath(cardPath))
	if err != nil {
		return Card{}, fmt.Errorf("read the card of the agent: %w", err)
	}
	c, err := parseCard(text, at)
	if err == nil {
		c.Signed, err = verify(ctx, client, at, c.Signatures, text)
	}
	if err != nil {
		return Card{}, fmt.Errorf("%w: %w", ErrCard, err)
	}
	return c, nil
}

// get reads a small JSON document.
func get(ctx context.Context, client *http.Client, at *url.URL) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, &StatusError{resp.StatusCode, resp.Header}
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxCard+1))
	if err == nil && len(text) > maxCard {
		err = fmt.Errorf("%w: it is larger than %d bytes", ErrCard, maxCard)
	}
	return text, err
}

// A StatusError is an HTTP status that says all that an agent answered.
type StatusError struct {
	Status int
	Header http.Header
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("it answered %d %s", e.Status, http.StatusText(e.Status))
}

// parseCard reads a card, and chooses the first interface at the host of the agent that can be used.
func parseCard(text []byte, at *url.URL) (Card, error) {
	canonical := jsontext.Value(strings.TrimSpace(string(text)))
	if err := canonical.Canonicalize(); err != nil || canonical.Kind() != '{' {
		return Card{}, errors.New("it is not a JSON object")
	}
	card, err := agentcard.DefaultCardParser(canonical)
	if err != nil {
		return Card{}, fmt.Errorf("it is not a card of A2A: %w", err)
	}
	sum := sha256.Sum256(canonical)
	c := Card{AgentCard: card, Digest: hex.EncodeToString(sum[:])}
	c.At, err = choose(card.SupportedInterfaces, at)
	return c, err
}

// choose returns the first interface that can be used. The error is about the one that comes nearest.
func choose(offered []*a2a.AgentInterface, at *url.URL) (*a2a.AgentInterface, error) {
	wrong := errors.New("it offers no interface of A2A 1.0")
	for _, i := range offered {
		if i == nil {
			continue
		}
		to, err := url.Parse(i.URL)
		switch {
		case i.ProtocolBinding != a2a.TransportProtocolJSONRPC && i.ProtocolBinding != a2a.TransportProtocolHTTPJSON:
			if i.ProtocolBinding != "" {
				wrong = fmt.Errorf("it offers %.40q, and mailboxd speaks JSONRPC and HTTP+JSON", i.ProtocolBinding)
			}
		case major(i.ProtocolVersion) != major(a2a.Version):
			wrong = fmt.Errorf("it offers version %.40q of A2A, and mailboxd speaks %s", i.ProtocolVersion, a2a.Version)
		case err != nil || to.User != nil || !dial.SameOrigin(at, to):
			return nil, fmt.Errorf("its interface %.200q is at another host than %s; that is refused", i.URL, at.Host)
		default:
			return i, nil
		}
	}
	return nil, wrong
}

// major returns the first number of a version.
func major(v a2a.ProtocolVersion) string {
	first, _, _ := strings.Cut(string(v), ".")
	return first
}
