package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mailboxd/internal/access/client"
)

func TestAPageThatHasBegunHasOneTopAndAnErrorInItsPlace(t *testing.T) {
	all, err := newPages()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{pages: all}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/agents", http.NoBody)
	parts := []struct{ name, left, end string }{{"head", "body", "</script>"}, {"top", "rest", `<main id="main" tabindex="-1">`}}
	for n := range parts {
		for words, finish := range map[string]func(http.ResponseWriter){
			"No agent is configured": func(w http.ResponseWriter) {
				s.write(w, r, http.StatusOK, page{Name: "agents", Title: "Agents", Data: agentsData{}})
			},
			"The daemon is not running": func(w http.ResponseWriter) { s.failWith(w, r, client.ErrDown) },
		} {
			got := httptest.NewRecorder()
			var w http.ResponseWriter = got
			for _, part := range parts[:n+1] {
				w = s.writePart(w, r, part.name, part.left, page{Name: "agents", Title: "Agents"})
				if text := got.Body.String(); !got.Flushed || !strings.HasSuffix(strings.TrimSpace(text), part.end) {
					t.Errorf("up to the %s, the page is %s; want that it ends with %s", part.name, text, part.end)
				}
			}
			finish(w)
			text := got.Body.String()
			for _, once := range []string{"<!doctype html>", "</title>", "<main id=", "</html>", words} {
				if strings.Count(text, once) != 1 {
					t.Errorf("the page is %s; want %q once", text, once)
				}
			}
		}
	}
}

func TestAnErrorOfTheDaemonIsShownWithItsStatus(t *testing.T) {
	all, err := newPages()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{pages: all, opts: Options{StopsAgents: true}}
	for _, c := range []struct {
		err    error
		method string
		status int
		shows  string
	}{
		{fmt.Errorf("connect: %w", client.ErrDown), "GET", http.StatusServiceUnavailable, "the page continues by itself"},
		{fmt.Errorf("connect: %w", client.ErrDown), "POST", http.StatusServiceUnavailable, "and try again"},
		{&client.Error{Kind: client.Stopping}, "GET", http.StatusServiceUnavailable, "the page continues by itself"},
		{&client.Error{Kind: client.Busy}, "GET", http.StatusServiceUnavailable, "the page continues by itself"},
		{&client.Error{Kind: client.Unfinished, Message: "process 7 is left"}, "POST", http.StatusAccepted, "It has begun and is not over yet: process 7 is left."},
		{&askingError{"D1"}, "POST", http.StatusConflict, `href="/decisions/D1"`},
		{&client.Error{Kind: client.Internal}, "GET", http.StatusInternalServerError, ""},
	} {
		w := httptest.NewRecorder()
		s.failWith(w, httptest.NewRequestWithContext(t.Context(), c.method, "/tasks/t1/cancel", http.NoBody), c.err)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.shows) {
			t.Errorf("%s, %v: %d, %s; want %d, %q", c.method, c.err, w.Code, w.Body, c.status, c.shows)
		}
		if down := errors.Is(c.err, client.ErrDown); down != strings.Contains(w.Body.String(), `<p class="text">The daemon is not running. It ended its agents`) {
			t.Errorf("%s, %v: %s; want what its agents do, if it is down", c.method, c.err, w.Body)
		}
		if still := strings.Contains(w.Body.String(), "data-still"); still != (c.method == "POST") {
			t.Errorf("%s, %v: is the page still? %t", c.method, c.err, still)
		}
	}
}
