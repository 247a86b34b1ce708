package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"sync"
	"time"
)

// sessionTime is how long a session lasts.
const sessionTime = 8 * time.Hour

// cookieName begins the name of the cookie of a session; its port follows. Cookies ignore ports,
// and a mailbox may have several pages.
const cookieName = "mbx-"

// A Session is one browser that was let in by a link.
type Session struct {
	Token string // in every form of the session
	until time.Time
}

// sessions are the browsers that were let in. Without any the map is nil.
type sessions struct {
	port string

	mu   sync.Mutex // guards open
	open map[digest]Session
}

// begin opens a session, and returns its cookie.
func (s *sessions) begin(now time.Time) *http.Cookie {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[digest]Session{}
	}
	secret := newSecret()
	s.open[sha256.Sum256([]byte(secret))] = Session{newSecret(), now.Add(sessionTime)}
	return &http.Cookie{
		Name: cookieName + s.port, Value: secret, Path: "/", MaxAge: int(sessionTime.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// find returns the session of a request.
func (s *sessions) find(r *http.Request, now time.Time) (Session, bool) {
	cookie, err := r.Cookie(cookieName + s.port)
	if err != nil {
		return Session{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.open[sha256.Sum256([]byte(cookie.Value))]
	return found, ok && now.Before(found.until)
}

// owns reports whether a form is one of the session.
func (s Session) owns(token string) bool {
	return s.Token != "" && subtle.ConstantTimeCompare([]byte(s.Token), []byte(token)) == 1
}
