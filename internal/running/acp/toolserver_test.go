package acp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// brokered gives a run a tool broker.
func (r *trial) brokered() *trial {
	r.t.Helper()
	r.opts.ToolsURL, r.opts.ToolsToken = "http://127.0.0.1:7/mcp", filepath.Join(r.opts.Cwd, "token")
	if err := os.WriteFile(r.opts.ToolsToken, []byte("secret\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return r
}

func TestTheSessionHasTheToolBrokerOfTheRun(t *testing.T) {
	const want = `[{"headers":[{"name":"Authorization","value":"Bearer secret"}],"name":"mailboxd-tools","type":"http","url":"http://127.0.0.1:7/mcp"}]`
	for _, words := range []string{"http say-servers", "http loads say-servers", "http resumes say-servers"} {
		r := newTrial(t, words).brokered()
		if words != "http say-servers" {
			r.opts.Resume = "s1"
		}
		if got := r.run(); got.Status != "ok" || !strings.HasSuffix(got.Text, want) {
			t.Errorf("%s: the session has the servers %s, %+v; want %s", words, got.Text, got.Error, want)
		}
	}
	if got := newTrial(t, "http say-servers").run(); got.Text != "[]" {
		t.Errorf("without a broker, the session has the servers %s", got.Text)
	}
}

func TestAnAgentThatCannotUseTheToolBrokerGetsNoPrompt(t *testing.T) {
	if got := newTrial(t, "say").brokered().run(); got.Error.Kind != "agent_unsuitable" || got.Text != "" {
		t.Errorf("an agent without servers over HTTP ended with %+v; want agent_unsuitable", got)
	}
	r := newTrial(t, "http say").brokered()
	r.opts.ToolsToken += ".missing"
	if got := r.run(); got.Error.Kind != "agent_unsuitable" || got.Text != "" {
		t.Errorf("without the token, the run ended with %+v; want agent_unsuitable", got)
	}
}

func TestTheToolBrokerDecidesAboutItsOwnTools(t *testing.T) {
	const no = "selected no, "
	var answers []string
	for n := range 5 {
		answers = append(answers, fmt.Sprintf(`{"id":"t%d","decision":"reject"}`, n))
	}
	answers = append(answers, "")
	r := newTrial(t, "http ask-tools").brokered()
	r.answer(answers[2:]...)
	if got := r.run(); got.Text != "selected yes, selected yes, "+no+no+no || len(r.progress()) != 3 {
		t.Errorf("the agent got %q, and %d questions were asked; want two calls allowed without one", got.Text, len(r.progress()))
	}
	r = newTrial(t, "ask-tools")
	r.answer(answers...)
	if got := r.run(); got.Text != no+no+no+no+no {
		t.Errorf("without a broker, the agent got %q", got.Text)
	}
}
