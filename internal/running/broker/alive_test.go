package broker

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnAnswerThatTakesLongShowsThatItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := httptest.NewRecorder()
		handler := answered(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			stop := keepAlive(r.Context())
			time.Sleep(3*aliveInterval + time.Second)
			stop()
			if !got.Flushed {
				t.Error("the program sees nothing before the answer")
			}
			time.Sleep(2 * aliveInterval)
			_, _ = w.Write([]byte("{}")) // a recorder keeps it
		}))
		handler.ServeHTTP(got, httptest.NewRequest(http.MethodPost, "/mcp", nil))
		if body := got.Body.String(); body != "   {}" {
			t.Errorf("the answer is %q; want a space for each %v, and the answer", body, aliveInterval)
		}
	})
}

func TestAnAnswerThatHasEndedGetsNoSigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := httptest.NewRecorder()
		var stop func()
		handler := answered(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stop = keepAlive(r.Context()) }))
		handler.ServeHTTP(got, httptest.NewRequest(http.MethodPost, "/mcp", nil))
		time.Sleep(2 * aliveInterval) // the program gave up, and a person has not decided yet
		stop()
		if got.Body.Len() > 0 {
			t.Errorf("the answer is %q; want nothing", got.Body)
		}
	})
}
