package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mailboxd/internal/stores/dirtree"
)

// Limits of what is known of a card.
const (
	lookAgain   = time.Minute     // how long a digest counts as that of the card
	lookTimeout = 5 * time.Second // how long a plan waits for a card
)

// Known remembers the digests of the cards of agents, by their addresses, so that a card that can't be read for a
// moment is none that has changed. The zero value is ready. It may be used concurrently, and not copied.
type Known struct {
	Dir string // has a file for each address; "": it forgets all at its end

	mu    sync.Mutex // guards cards
	cards map[string]*knownCard
}

// A knownCard is what is known of the card at one address.
type knownCard struct {
	mu     sync.Mutex // guards the fields below, while the card is read
	digest string
	looked time.Time
}

// A Reader reads a card.
type Reader func(context.Context) (Card, error)

// Digest returns the digest of the card at an address, and reads the card if the last look was long ago. It is "" for a
// card that was never read.
func (k *Known) Digest(address string, read Reader) string { return k.look(address, read, lookAgain) }

// Look reads the card at an address now.
func (k *Known) Look(address string, read Reader) { k.look(address, read, 0) }

func (k *Known) look(address string, read Reader, after time.Duration) string {
	c := k.at(address)
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < after {
		return c.digest
	}
	ctx, stop := context.WithTimeout(context.Background(), lookTimeout)
	defer stop()
	card, err := read(ctx)
	c.looked = time.Now()
	if err != nil || card.Digest == c.digest {
		return c.digest // the run says why the card can't be read
	}
	c.digest = card.Digest
	if k.Dir != "" && os.MkdirAll(k.Dir, 0o700) == nil {
		_ = dirtree.WriteFile(k.file(address), []byte(c.digest+"\n")) // without it, a card is read before it is known
	}
	return c.digest
}

// at returns what is known of the card at an address.
func (k *Known) at(address string) *knownCard {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.cards[address]
	if c == nil {
		c = &knownCard{}
		if k.Dir != "" {
			text, _ := os.ReadFile(k.file(address)) // without the file, nothing is known
			c.digest = strings.TrimSpace(string(text))
		}
		if k.cards == nil {
			k.cards = map[string]*knownCard{}
		}
		k.cards[address] = c
	}
	return c
}

func (k *Known) file(address string) string {
	sum := sha256.Sum256([]byte(address))
	return filepath.Join(k.Dir, hex.EncodeToString(sum[:]))
}
