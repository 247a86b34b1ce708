package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"mailboxd/internal/access/client"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/decisions/task"
)

// sendsToEcho sends words by the form of the page.
func (b *tab) sendsToEcho(words string) {
	b.t.Helper()
	b.visit("/send")
	b.do(chromedp.SetValue(`select[name=agent]`, "echo"), chromedp.SendKeys(`textarea[name=words]`, words), chromedp.Click(`main button.main`))
}

func TestAPasskeySendsAndCoversTenMinutesOfSendingAndNoApproval(t *testing.T) {
	b, w, _ := withPasskey(t, (*world).addEcho)
	b.sendsToEcho("count to 3")
	b.sees("Use your passkey", "count to 3")
	digest := eval[string](b, `document.querySelector("pre.asked").textContent.match(/digest +([0-9a-f]{64})/)[1]`)
	question := strings.ReplaceAll(w.question(), "\r", "")
	for _, want := range []string{"a passkey of grace to send: Send a task to echo", "words     count to 3", digest, "stage send, sent", "next 10 minutes"} {
		if !strings.Contains(question, want) {
			t.Errorf("the terminal shows %q; want %q in it", question, want)
		}
	}
	if n := len(w.tasksOf("echo")); n != 0 {
		t.Fatalf("%d tasks before the passkey was used; want none", n)
	}
	b.do(chromedp.Click(`form[data-passkey] button`))
	b.sees("It was sent")
	w.until(func() bool { return len(w.tasksOf("echo")) == 1 })
	b.visit("/send")
	b.sees("Your last proof covers this")
	b.sendsToEcho("count to 4")
	w.until(func() bool { return len(w.tasksOf("echo")) == 2 })
	b.visit("/tasks/deploy-api-4.2")
	b.do(chromedp.Click(`button[data-verb=approve]`))
	b.sees("Use your passkey")
	if row := w.details("deploy-api-4.2").Task; row.State != task.Held {
		t.Errorf("the task is %s; want held until a passkey signs the approval", row.State)
	}
}

func TestAPasskeyWithoutItsPersonSendsNothing(t *testing.T) {
	b, w, token := withPasskey(t, (*world).addEcho)
	b.sendsToEcho("count to 3")
	b.sees("Use your passkey")
	if _, err := chromedp.Call(b.ctx, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: token}); err != nil {
		t.Fatal(err)
	}
	b.signsForNobody()
	b.sees("It was not done", "person was not verified")
	w.refusal(task.KindControlRefused, "the person was not verified")
	if n := len(w.tasksOf("echo")); n != 0 {
		t.Errorf("%d tasks were sent; want none", n)
	}
	b.visit("/send")
	b.sees("The next page asks for the proof of an approval")
}

func TestASignatureOfASendingIsNoneOfAnApproval(t *testing.T) {
	b, w, _ := withPasskey(t, (*world).addEcho)
	b.sendsToEcho("count to 3")
	b.sees("Use your passkey")
	options := eval[string](b, `document.querySelector("form[data-passkey]").dataset.passkey`)
	b.visit("/tasks/deploy-api-4.2")
	b.do(chromedp.Click(`button[data-verb=approve]`))
	b.sees("It signs that you approve")
	b.signsAfter(fmt.Sprintf(`form.dataset.passkey = %q`, options))
	b.sees("Nothing was decided", "not of this decision")
	if row := w.details("deploy-api-4.2").Task; row.State != task.Held {
		t.Errorf("the task is %s; want held", row.State)
	}
}

func TestSendingNeedsTheSignatureThatTheApproverNeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addEcho()
	w.withKey(t)
	v := w.visit(w.open())
	_, text := v.post("/send", url.Values{"token": {v.token}, "agent": {"echo"}, "words": {"count to 3"}})
	if !strings.Contains(text, "Your ssh-agent signs it then") {
		t.Errorf("the page does not say that the ssh-agent signs: %s", text)
	}
	if asked := w.typeNumber(text); !strings.Contains(asked, "words     count to 3") {
		t.Errorf("the terminal asks %q; want the words", asked)
	}
	w.until(func() bool { return len(w.tasksOf("echo")) == 1 })
}

func TestWithoutTheKeyOfTheApproverTheNumberAloneSendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addEcho()
	w.withKey(t)
	for i, variable := range w.env {
		if strings.HasPrefix(variable, "SSH_AUTH_SOCK=") {
			w.env[i] = "SSH_AUTH_SOCK="
		}
	}
	v := w.visit(w.open())
	at, text := v.begin("/send", url.Values{"token": {v.token}, "agent": {"echo"}, "words": {"count to 3"}})
	w.typeNumber(text)
	w.until(func() bool { _, text = v.get(at); return strings.Contains(text, "It was not done") })
	if n := len(w.tasksOf("echo")); n != 0 {
		t.Errorf("%d tasks were sent; want none: %s", n, text)
	}
}

func TestTheDaemonRefusesASignatureThatIsNotOfWhatIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withKey(t)
	const digest = "7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1fa3d677284addd200126d9069"
	for says, one := range map[string]client.Sending{
		"the proof of ada doesn't hold": {Digest: digest, Proof: &client.Signature{Expires: time.Now().Add(time.Minute), Signature: "x"}},
		"is valid for 5m0s":             {Digest: digest, Proof: &client.Signature{Expires: time.Now().Add(time.Hour), Signature: "x"}},
		"must be ssh or passkey":        {Digest: digest, Proof: &client.Signature{Kind: proof.KindTerminal, Expires: time.Now().Add(time.Minute)}},
		"proof: is missing":             {Digest: digest},
		"digest: must be the SHA-256":   {Digest: "x", Proof: &client.Signature{}},
	} {
		w.do(func(daemon *client.Client) error {
			if err := daemon.ProveSending(t.Context(), one); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("a wrong signature: %v; want %q", err, says)
			}
			return nil
		})
	}
}

func TestATaskThatChangesBetweenLookAndProofIsNeitherCopiedNorRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addEcho()
	w.send("failed", "broken", `{}`)
	w.result("failed")
	for path, form := range map[string]url.Values{"/retry": {"task": {"failed"}}, "/tasks/failed/copy": {}} {
		v := w.visit(w.open())
		form.Set("token", v.token)
		at, text := v.begin(path, form)
		before := w.details("failed").Task.Revision
		w.do(func(daemon *client.Client) error {
			_, err := daemon.Retry(t.Context(), "failed", client.ControlOptions{})
			return err
		})
		w.until(func() bool {
			row := w.details("failed").Task
			return row.Revision == before+1 && row.State == task.Done
		})
		w.typeNumber(text)
		w.until(func() bool { _, text = v.get(at); return strings.Contains(text, "It was not done") })
		if !strings.Contains(text, fmt.Sprintf("has revision %d now, and the page showed %d", before+1, before)) {
			t.Errorf("%s shows %s; want that the task has changed", path, text)
		}
		if status, _ := v.get("/"); status != http.StatusOK || len(w.tasksOf("broken")) != 1 {
			t.Errorf("GET / = %d, and there are tasks %v; want the failed one alone", status, w.tasksOf("broken"))
		}
	}
}
