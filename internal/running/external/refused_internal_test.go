package external

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

func expect(t *testing.T, what string, got Result, kind envelope.Kind, words string) {
	t.Helper()
	if got.Kind != kind || !strings.Contains(got.Message, words) {
		t.Errorf("%s: result = %+v; want %s, with %q", what, got, kind, words)
	}
}

func TestARedirectIsRefusedAndTheOtherHostNotAsked(t *testing.T) {
	var asked2 atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked2.Add(1) }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := newService(t, say(status, "", "Location", other.URL+"/steal"), nil)
		expect(t, fmt.Sprint(status), answer(t, s.URL, task.ServiceJSON), envelope.PolicyViolation, "redirects to another host")
		if len(s.posts()) != 1 {
			t.Errorf("%d: %d posts; want one", status, len(s.posts()))
		}
	}
	s := newService(t, say(307, "", "Location", "/again"), nil)
	expect(t, "the same host", answer(t, s.URL, task.ServiceJSON), envelope.AgentProtocol, "no redirect is followed")
	s = newService(t, say(202, "", "Location", other.URL+"/answer"), nil)
	expect(t, "the place of the answer", answer(t, s.URL, task.ServicePoll), envelope.AgentProtocol, "at another host; that is refused")
	s = newService(t, say(202, "", "Location", "/answer"), say(302, "", "Location", other.URL+"/answer"))
	expect(t, "a redirect to the answer", answer(t, s.URL, task.ServicePoll), envelope.PolicyViolation, "at another host; that is refused")
	if n := asked2.Load(); n != 0 {
		t.Errorf("the other host was asked %d times", n)
	}
}

// resolving returns a resolver that answers each question for an IPv4 address with one, by a server
// that speaks DNS: RFC 1035.
func resolving(t *testing.T, address [4]byte) *net.Resolver {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { conn.Close(); serving.Wait() })
	serving.Go(func() {
		for packet := make([]byte, 512); ; {
			n, from, err := conn.ReadFromUDP(packet)
			if err != nil {
				return
			}
			end := 12
			for packet[end] != 0 {
				end += int(packet[end]) + 1
			}
			question := packet[12 : end+5]
			reply := append([]byte{packet[0], packet[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
			if n > end && packet[end+2] == 1 { // type A
				reply[7] = 1
				reply = append(append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), address[:]...)
			}
			_, _ = conn.WriteToUDP(reply, from)
		}
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func TestALinkLocalAddressIsRefusedAlsoByName(t *testing.T) {
	for address, words := range map[[4]byte]string{
		{169, 254, 169, 254}: "169.254.169.254 is refused: it is a link-local address",
		{0, 0, 0, 0}:         "0.0.0.0 is refused",
		{224, 0, 0, 1}:       "224.0.0.1 is refused",
	} {
		got := answer(t, "https://metadata.example.com/run", task.ServiceJSON, func(o *Options) { o.Resolver = resolving(t, address) })
		expect(t, words, got, envelope.PolicyViolation, words)
		if got.Again {
			t.Errorf("%s: another attempt is allowed", words)
		}
	}
	got := answer(t, "http://localhost:1/run", task.ServiceJSON, func(o *Options) { o.Resolver = resolving(t, [4]byte{192, 0, 2, 1}) })
	if got.Kind != envelope.AgentError && got.Kind != envelope.PolicyViolation {
		t.Errorf("http at another machine: %+v; want it refused", got)
	}
}

func TestAnAnswerOf65MiBIsRefused(t *testing.T) {
	large := func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"summary":"`)
		block := strings.Repeat("x", 1<<20)
		for range 65 {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
		fmt.Fprint(w, `"}`)
	}
	got := answer(t, newService(t, large, nil).URL, task.ServiceJSON)
	expect(t, "65 MiB", got, envelope.OutputTooLarge, "larger than 67108864 bytes")
	got = answer(t, newService(t, say(202, "", "Location", "/a", "Retry-After", "0"), large).URL, task.ServicePoll)
	expect(t, "65 MiB at the place of the answer", got, envelope.OutputTooLarge, "larger than 67108864 bytes")
	stream := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		large(w, r)
	}
	got = answer(t, newService(t, stream, nil).URL, task.ServiceStream)
	expect(t, "an event of 65 MiB", got, envelope.OutputTooLarge, "larger than 67108864 bytes")
	got = answer(t, newService(t, say(200, `{"summary":"`+strings.Repeat("x", 5<<20)+`"}`), nil).URL, task.ServiceJSON)
	expect(t, "5 MiB", got, envelope.OutputTooLarge, "is in answer.body of the run directory")
}

func TestASlowHeaderOrASilentAnswerEndsTheRequest(t *testing.T) {
	silent := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	begun := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"sum`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	for _, c := range []struct {
		name  string
		post  http.HandlerFunc
		words string
	}{
		{"header", silent, "did not begin to answer within 50ms"},
		{"idle", begun, "sent nothing more within 50ms"},
	} {
		s := newService(t, c.post, nil)
		service := asked(s.URL, task.ServiceJSON)
		service.HeaderTimeout, service.IdleTimeout = task.Duration(50*time.Millisecond), task.Duration(50*time.Millisecond)
		if c.name == "idle" {
			service.HeaderTimeout = 0
		}
		dir := newRun(t)
		got := run(t, dir, service)
		expect(t, c.name, got, envelope.IdleTimeout, c.words)
		expect(t, c.name, got, envelope.IdleTimeout, "whether the work was done is unknown")
		if r, _, _ := ReadRecord(dir); r.Answered || got.Again {
			t.Errorf("%s: record %+v, again %v; want the request open, and no other attempt", c.name, r, got.Again)
		}
		service.Idempotent = true
		if got = run(t, newRun(t), service); !got.Again {
			t.Errorf("%s of an idempotent agent: %+v; want another attempt", c.name, got)
		}
	}
}

func TestACertificateIsVerified(t *testing.T) {
	s := httptest.NewTLSServer(say(200, done))
	defer s.Close()
	s.Config.ErrorLog = nil
	got := answer(t, s.URL, task.ServiceJSON)
	expect(t, "an unknown authority", got, envelope.AgentProtocol, "its certificate is refused")
	if got.Again {
		t.Errorf("result = %+v; want no other attempt", got)
	}
	known := x509.NewCertPool()
	known.AddCert(s.Certificate())
	trust := func(o *Options) { o.Roots = known }
	if got = answer(t, s.URL, task.ServiceJSON, trust); string(got.Answer) != done {
		t.Errorf("a trusted certificate: %+v; want the answer", got)
	}
	other := strings.Replace(s.URL, "127.0.0.1", "service.test", 1)
	local := func(o *Options) { o.Resolver = resolving(t, [4]byte{127, 0, 0, 1}) }
	expect(t, "another name", answer(t, other, task.ServiceJSON, trust, local), envelope.AgentProtocol, "its certificate is refused")
}

func TestWhatIsNoAnswerIsRefused(t *testing.T) {
	for body, kind := range map[string]envelope.Kind{
		"":                        envelope.OutputInvalid,
		"[1]":                     envelope.OutputInvalid,
		"<html>":                  envelope.OutputInvalid,
		`{"a":1`:                  envelope.OutputInvalid,
		`{"status":"ok"} trailer`: envelope.OutputInvalid,
	} {
		expect(t, body, answer(t, newService(t, say(200, body), nil).URL, task.ServiceJSON), kind, "did not answer with a JSON object")
	}
	events := func(text string) *service {
		return newService(t, say(200, text, "Content-Type", "text/event-stream"), nil)
	}
	expect(t, "a stream for json", answer(t, events("").URL, task.ServiceJSON), envelope.AgentProtocol, "set http.mode: stream")
	for _, text := range []string{"event: progress\ndata: {}\n\n", "event: result\ndata: {}\n"} {
		expect(t, text, answer(t, events(text).URL, task.ServiceStream), envelope.RunLost, "ended without a result")
	}
	expect(t, "no place", answer(t, newService(t, say(202, ""), nil).URL, task.ServicePoll), envelope.AgentProtocol, "has no Location")
	gone := newService(t, say(202, "", "Location", "/x"), say(404, "never heard of it"))
	expect(t, "gone", answer(t, gone.URL, task.ServicePoll), envelope.AgentError, "never heard of it")
}

func TestAStreamIsReadAsItsStandardSays(t *testing.T) {
	s := newService(t, say(200, ": alive\r\n\r\nevent: progress\r\ndata: {\"pct\":\r\ndata: 40}\r\n\r\n"+
		"event: other\ndata: {}\n\nretry: 3\ndata\n\n"+
		"event:result\nid: 4\ndata:"+done+"\n\nevent: result\ndata: {}\n\n", "Content-Type", "text/event-stream; charset=utf-8"), nil)
	if got := answer(t, s.URL, task.ServiceStream); string(got.Answer) != done {
		t.Errorf("result = %+v; want the first event named result", got)
	}
}

func TestAServiceThatIsNotThereMayBeAskedAgain(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	dir := newRun(t)
	got := run(t, dir, asked(s.URL, task.ServiceJSON))
	expect(t, "refused connection", got, envelope.AgentError, "can't be reached")
	if r, _, _ := ReadRecord(dir); !got.Again || !r.Answered {
		t.Errorf("result %+v, record %+v; want another attempt that sends anew", got, r)
	}
}

func TestAPlaceIsAskedUntilTheAnswerIsThere(t *testing.T) {
	var n atomic.Int64
	accept := say(202, `{"note":"begun"}`, "Location", "../runs/7", "Retry-After", "0")
	s := newService(t, accept, func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) {
		case 1:
			say(503, "busy", "Retry-After", "0")(w, r)
		case 2:
			say(303, "", "Location", "/done/7")(w, r)
		default:
			if r.URL.Path != "/done/7" {
				say(404, r.URL.Path)(w, r)
				return
			}
			say(200, done)(w, r)
		}
	})
	if got := answer(t, s.URL+"/a/run", task.ServicePoll); string(got.Answer) != done {
		t.Errorf("result = %+v; want the answer", got)
	}
}
