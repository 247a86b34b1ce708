package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"sync"
	"time"
)

// LinkTime is how long a link can be used.
const LinkTime = 2 * time.Minute

// Why a link does not open the page.
var (
	errLinkUsed = errors.New("the link was used before")
	errLinkLate = errors.New("the link is older than two minutes")
	errLinkNone = errors.New("there is no such link")
)

// A digest stands for a secret that is not kept.
type digest [sha256.Size]byte

// newSecret returns 256 random bits as text.
func newSecret() string {
	bits := make([]byte, 32)
	_, _ = rand.Read(bits) // never fails
	return base64.RawURLEncoding.EncodeToString(bits)
}

// links are the secrets of links, each of which opens one session. The zero value has none.
type links struct {
	mu     sync.Mutex // guards issued
	issued map[digest]time.Time
}

// add returns the secret of a new link. Zero in the map stands for a link that was used.
func (l *links) add(now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.issued == nil {
		l.issued = map[digest]time.Time{}
	}
	secret := newSecret()
	l.issued[sha256.Sum256([]byte(secret))] = now.Add(LinkTime)
	return secret
}

// take uses a link.
func (l *links) take(secret string, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := digest(sha256.Sum256([]byte(secret)))
	until, known := l.issued[key]
	switch {
	case !known:
		return errLinkNone
	case until.IsZero():
		return errLinkUsed
	}
	l.issued[key] = time.Time{}
	if now.After(until) {
		return errLinkLate
	}
	return nil
}
