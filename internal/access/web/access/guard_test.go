package access

import (
	"context"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// newGuard serves a guarded page of a mailbox that answers "shown".
func newGuard(t *testing.T, judge func(quiet bool) string) *Guard {
	t.Helper()
	answer := func(status int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	g, err := Open(t.Context(), Options{
		Name:  "box",
		Judge: func(_ context.Context, _ int, _, _ string, quiet bool) (string, error) { return judge(quiet), nil },
		Down:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusServiceUnavailable) },
		Refuse: func(w http.ResponseWriter, _ *http.Request, why string) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, why)
		},
		Login: answer(http.StatusUnauthorized),
	})
	if err != nil {
		t.Fatal(err)
	}
	page := &httptest.Server{Listener: g.Listener(), Config: &http.Server{ConnContext: ConnContext, Handler: g.Wrap(http.HandlerFunc(answer(http.StatusOK)))}}
	page.Start()
	t.Cleanup(page.Close)
	return g
}

// ask sends a request to a page, with the cookies of its host.
func (g *Guard) ask(t *testing.T, c *http.Client, method, path string, form url.Values) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+g.Listener().Addr().String()+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = g.Host()
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestTwoPagesOfAMailboxHaveTheirOwnSessions(t *testing.T) {
	first, second := newGuard(t, func(bool) string { return "" }), newGuard(t, func(bool) string { return "" })
	jar, err := cookiejar.New(nil) // ignores ports, as browsers do
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, g := range []*Guard{first, second} {
		_, secret, _ := strings.Cut(g.Link(), "#")
		if status := g.ask(t, browser, http.MethodPost, "/session", url.Values{"secret": {secret}}); status != http.StatusSeeOther {
			t.Fatalf("POST /session = %d; want 303", status)
		}
	}
	for _, g := range []*Guard{first, second} {
		if status := g.ask(t, browser, http.MethodGet, "/", nil); status != http.StatusOK {
			t.Errorf("GET / of %s = %d; want 200", g.Host(), status)
		}
	}
}

func TestAFloodOfConnectionsOfARunIsNoFloodOfEvents(t *testing.T) {
	recorded := 0
	g := newGuard(t, func(quiet bool) string {
		if !quiet {
			recorded++
		}
		return "it is a process of the run of t1"
	})
	for range 3 * mostReports {
		alone := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		if status := g.ask(t, alone, http.MethodGet, "/", nil); status != http.StatusForbidden {
			t.Fatalf("GET / = %d; want 403", status)
		}
	}
	if recorded == 0 || recorded == 3*mostReports { // minutes may have ended meanwhile
		t.Errorf("%d refusals are recorded; want %d a minute", recorded, mostReports)
	}
}

func TestAFormOfAnotherOriginIsRefusedWhateverElseTheBrowserSays(t *testing.T) {
	g := newGuard(t, func(bool) string { return "" })
	for origin, want := range map[string]bool{"http://evil.example": true, "null": true, "http://" + g.Host(): false, "": false} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/session", http.NoBody)
		r.Host = g.Host()
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		if why := foreign(r, g.host); (why != "") != want {
			t.Errorf("a form of the origin %q: %q; want a refusal: %t", origin, why, want)
		}
	}
}
