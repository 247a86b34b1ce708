package web

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/access/client"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/access/web/access"
	"mailboxd/internal/cli/reader"
)

// newProver is a page whose daemon answers decisions with decide.
func newProver(t *testing.T, decide http.HandlerFunc) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "prove-") // a socket needs a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	daemon := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			decide(w, r)
			return
		}
		fmt.Fprint(w, "{}")
	})}}
	daemon.Start()
	t.Cleanup(daemon.Close)
	s := &server{opts: Options{Location: reader.Location{Socket: path}}, terminal: &Terminal{}}
	if s.guard, err = access.Open(t.Context(), access.Options{Name: "x"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.guard.Listener().Close() })
	if s.terminal.file, err = os.Create(filepath.Join(dir, "terminal")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.terminal.Close() })
	return s
}

// proveOne sends a signature for a decision, and returns how the decision ended.
func proveOne(ctx context.Context, t *testing.T, s *server) (decision, string) {
	t.Helper()
	one := waiting("approve")
	one.word.Proof = &client.Signature{Kind: proof.KindPasskey}
	if err := s.decisions.add(one); err != nil {
		t.Fatal(err)
	}
	says := base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf(`{"origin":%q}`, s.origin())))
	form := url.Values{"credential": {fmt.Sprintf(`{"id":"YQ","response":{"clientDataJSON":%q,"authenticatorData":"YQ","signature":"YQ"}}`, says)}}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/decisions/"+one.ID, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetPathValue("id", one.ID)
	s.prove(httptest.NewRecorder(), r)
	ended, _ := s.decisions.find(one.ID)
	shown, err := os.ReadFile(s.terminal.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return ended, string(shown)
}

func TestADecisionIsMadeThoughTheBrowserIsGone(t *testing.T) {
	ctx, gone := context.WithCancel(t.Context())
	defer gone()
	s := newProver(t, func(w http.ResponseWriter, _ *http.Request) {
		gone()
		fmt.Fprint(w, "{}")
	})
	if ended, shown := proveOne(ctx, t, s); !ended.Done || ended.Why != "" || !strings.Contains(shown, "The passkey signed") {
		t.Errorf("the decision ended with %q, and the terminal shows %q; want that it was made", ended.Why, shown)
	}
}

func TestWithoutAnAnswerOfTheDaemonTheOutcomeIsUnknown(t *testing.T) {
	s := newProver(t, func(w http.ResponseWriter, _ *http.Request) {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
	})
	ended, shown := proveOne(t.Context(), t, s)
	if !ended.Unknown || strings.Contains(shown, "Nothing was decided") || !strings.Contains(shown, "outcome is unknown") {
		t.Errorf("the decision ended as %+v, and the terminal shows %q; want that the outcome is unknown", ended, shown)
	}
	all, err := newPages()
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := all.templates["decision"].ExecuteTemplate(&page, "layout", pageWith(ended)); err != nil || !strings.Contains(page.String(), "The outcome is unknown") || strings.Contains(page.String(), "Nothing was decided") {
		t.Errorf("the page shows %s, %v; want that the outcome is unknown", page.String(), err)
	}
}

func TestARefusalOfTheDaemonDecidesNothing(t *testing.T) {
	s := newProver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"error":{"kind":"forbidden","message":"the person was not verified"}}`)
	})
	if ended, shown := proveOne(t.Context(), t, s); ended.Unknown || !strings.Contains(shown, "Nothing was decided: the person was not verified") {
		t.Errorf("the decision ended as %+v, and the terminal shows %q; want that nothing was decided", ended, shown)
	}
}

func pageWith(data any) page { return page{Name: "decision", Title: "Decision", Data: data} }
