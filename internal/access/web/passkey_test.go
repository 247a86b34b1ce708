package web_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/demo"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// authenticator plugs a token into the browser, which verifies its person by itself.
func (b *tab) authenticator() webauthn.AuthenticatorID {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		b.t.Fatal(err)
	}
	made, err := chromedp.Call(b.ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportUsb,
		HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	return made.AuthenticatorID
}

var passkeyPattern = regexp.MustCompile(`(?m)^passkey mbx-\S+\.localhost \S+ [A-Za-z0-9_-]+`)

// enrol makes a passkey on the page, and returns the line that the terminal shows.
func (w *world) enrol(b *tab) string {
	w.t.Helper()
	b.visit("/passkey")
	b.do(chromedp.Click(`form[data-passkey] button`))
	number := b.number()
	if question := w.question(); !strings.Contains(question, "The page made a passkey") || passkeyPattern.MatchString(question) {
		w.t.Errorf("the terminal asks %q; want the question, and no line before the number", question)
	}
	fmt.Fprintln(w.person, number)
	b.sees("The terminal shows its line")
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(pause) {
		if line := passkeyPattern.FindString(w.shown()); line != "" {
			return line
		}
	}
	w.t.Fatalf("the terminal shows no passkey: %q", w.shown())
	return ""
}

// require has the daemon want a passkey of the approver.
func (w *world) require(line string) {
	w.t.Helper()
	appendTo(w.t.(*testing.T), w.config, fmt.Sprintf("approvers:\n  - {name: grace, uid: %d, proof: person, keys: [%q]}\n", os.Geteuid(), line))
	w.stop(w.daemon)
	w.serve()
}

// withPasskey is a browser with a passkey that the daemon wants, and the demo. The world is prepared first.
func withPasskey(t *testing.T, prepare ...func(*world)) (*tab, *world, webauthn.AuthenticatorID) {
	t.Helper()
	b, w := browser(t), newWorld(t)
	for _, do := range prepare {
		do(w)
	}
	b.enter(w.open())
	token := b.authenticator()
	w.require(w.enrol(b))
	if err := demo.Begin(w.at.Root); err != nil {
		t.Fatal(err)
	}
	w.state("deploy-api-4.2", task.Held)
	b.visit("/tasks/deploy-api-4.2")
	return b, w, token
}

func TestAPersonApprovesWithAPasskeyThatCountsAfterARestart(t *testing.T) {
	b, w, _ := withPasskey(t)
	w.do(func(daemon *client.Client) error {
		_, err := daemon.Pause(t.Context(), client.AgentOptions{Agent: "deployer"})
		return err
	})
	b.do(chromedp.Click(`button[data-verb=approve]`))
	b.sees("Use your passkey")
	asked := w.details("deploy-api-4.2").Approvals[0]
	question := strings.ReplaceAll(w.question(), "\r", "")
	for _, want := range []string{"a passkey of grace to approve the task deploy-api-4.2", view.Question(asked), "demo-agent deployer", "revision 1, stage pre, approved"} {
		if !strings.Contains(question, want) {
			t.Errorf("the terminal shows %q; want %q in it", question, want)
		}
	}
	b.do(chromedp.Click(`form[data-passkey] button`))
	b.sees("Approved")
	if p := w.details("deploy-api-4.2").Approvals[0].Proof; p == nil || p.Kind != "passkey" || !strings.HasPrefix(p.Key, "SHA256:") || !strings.Contains(p.Signature, "authenticatorData") {
		t.Errorf("proof %+v; want one of a passkey", p)
	}
	w.stop(w.daemon)
	w.serve()
	w.do(func(daemon *client.Client) error {
		_, err := daemon.Resume(t.Context(), client.AgentOptions{Agent: "deployer"})
		return err
	})
	w.result("deploy-api-4.2")
}

func TestADenialIsSignedWithAPasskey(t *testing.T) {
	b, w, _ := withPasskey(t)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("form[action$='/deny'] textarea").value = "not in the freeze"; document.querySelector("form[action$='/deny']").submit()`))
	b.sees("Use your passkey")
	b.do(chromedp.Click(`form[data-passkey] button`))
	b.sees("Denied")
	if raw := w.result("deploy-api-4.2"); !strings.Contains(string(raw), "not in the freeze") {
		t.Errorf("the result is %s; want the reason", raw)
	}
}

func TestAPasskeyWithoutItsPersonDecidesNothing(t *testing.T) {
	b, w, token := withPasskey(t)
	b.do(chromedp.Click(`button[data-verb=approve]`))
	b.sees("Use your passkey")
	if _, err := chromedp.Call(b.ctx, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: token}); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Click(`form[data-passkey] button`))
	b.sees("No passkey was used")
	form := `{"id":"YQ","response":{"clientDataJSON":"e30","authenticatorData":"YQ","signature":"YQ"}}`
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector("[name=credential]").value = %q; document.querySelector("form[data-passkey]").submit()`, form)))
	b.sees("Nothing was decided", "passkey was used on another page")
	if row := w.details("deploy-api-4.2").Task; row.State != task.Held {
		t.Errorf("the task is %s; want held", row.State)
	}
}

// signsForNobody has the passkey sign without asking for its person.
func (b *tab) signsForNobody() {
	b.t.Helper()
	b.signsAfter(`const options = JSON.parse(form.dataset.passkey);
		options.userVerification = "discouraged";
		form.dataset.passkey = JSON.stringify(options);`)
}

// signsAfter clicks the button of a passkey after a change of its form, in one step: the page refreshes it each second.
func (b *tab) signsAfter(change string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`{
		const form = document.querySelector("form[data-passkey]");
		` + change + `
		form.querySelector("button").click();
	}`))
}

// TestTheDaemonRefusesAPasskeyThatVerifiedNobody has the browser sign a decision without asking
// for its person, as a page of another program may.
func TestTheDaemonRefusesAPasskeyThatVerifiedNobody(t *testing.T) {
	b, w, token := withPasskey(t)
	if _, err := chromedp.Call(b.ctx, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: token}); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Click(`button[data-verb=approve]`))
	b.sees("Use your passkey")
	b.signsForNobody()
	b.sees("Nothing was decided", "person was not verified")
	w.refusal(task.KindApprovalRefused, "the person was not verified")
	if row := w.details("deploy-api-4.2").Task; row.State != task.Held {
		t.Errorf("the task is %s; want held", row.State)
	}
}

func TestASignatureOfAPasskeyDecidesNoOtherTask(t *testing.T) {
	b, w, _ := withPasskey(t)
	w.state("rotate-keys-eu", task.Held)
	b.do(chromedp.Click(`button[data-verb=approve]`))
	b.sees("Use your passkey")
	options := eval[string](b, `document.querySelector("form[data-passkey]").dataset.passkey`)
	b.visit("/tasks/rotate-keys-eu")
	b.do(chromedp.Click(`button[data-verb=approve]`))
	b.sees("Use your passkey")
	b.signsAfter(fmt.Sprintf(`form.dataset.passkey = %q;`, options))
	b.sees("Nothing was decided", "not of this decision")
	w.refusal(task.KindApprovalRefused, "not of this decision")
	for _, id := range []envelope.ID{"deploy-api-4.2", "rotate-keys-eu"} {
		if row := w.details(id).Task; row.State != task.Held {
			t.Errorf("%s is %s; want held", id, row.State)
		}
	}
}

func TestOnlyTheLastDecisionWaitsForAPasskey(t *testing.T) {
	b, w, _ := withPasskey(t)
	w.state("rotate-keys-eu", task.Held)
	b.do(chromedp.Click(`button[data-verb=approve]`))
	b.sees("Use your passkey")
	options := eval[string](b, `document.querySelector("form[data-passkey]").dataset.passkey`)
	action := eval[string](b, `document.querySelector("form[data-passkey]").action`)
	w.question()
	b.visit("/tasks/rotate-keys-eu")
	b.do(chromedp.Click(`button[data-verb=approve]`))
	b.sees("Use your passkey")
	if question := w.question(); !strings.Contains(question, "the task rotate-keys-eu") {
		t.Errorf("the terminal shows %q; want rotate-keys-eu last", question)
	}
	b.signsAfter(fmt.Sprintf(`form.dataset.passkey = %q; form.action = %q;`, options, action))
	b.sees("no decision waits for this passkey any more")
	if row := w.details("deploy-api-4.2").Task; row.State != task.Held {
		t.Errorf("the task is %s; want held", row.State)
	}
}

func TestAPasskeyIsEnrolledByItsNumberAlone(t *testing.T) {
	b, w := browser(t), newWorld(t)
	b.enter(w.open())
	b.authenticator()
	b.visit("/passkey")
	b.do(chromedp.Click(`form[data-passkey] button`))
	number := b.number()
	w.question()
	fmt.Fprintln(w.person, string('0'+'9'-number[0])+number[1:])
	b.sees("No passkey was enrolled", "Another number was typed")
	if line := passkeyPattern.FindString(w.shown()); line != "" {
		t.Errorf("the terminal shows %q without the number", line)
	}
}

func TestAPasskeyThatNoBrowserMadeIsNotEnrolled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visit(w.open())
	for _, made := range []string{"", "{}", `{"id":"YQ","response":{"clientDataJSON":"e30","authenticatorData":"YQ","publicKey":"YQ"}}`} {
		if status, text := v.post("/passkey", url.Values{"token": {v.token}, "credential": {made}}); status != http.StatusBadRequest {
			t.Errorf("POST /passkey %q = %d, %s; want 400", made, status, text)
		}
	}
	if status, _ := v.post("/passkey", url.Values{"credential": {"{}"}}); status != http.StatusForbidden {
		t.Errorf("POST /passkey without the token = %d; want 403", status)
	}
}

// passkeyWithoutBrowser has the daemon want a passkey that no browser has.
func (v *visitor) passkeyWithoutBrowser() {
	w := v.w
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		w.t.Fatal(err)
	}
	at, err := url.Parse(v.origin)
	if err != nil {
		w.t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString
	w.require(fmt.Sprintf("passkey %s %s %s", at.Hostname(), text([]byte("credential")), text(der)))
}

// approve begins to approve a task, and returns the path of the decision.
func (v *visitor) approve(id envelope.ID) string {
	v.w.t.Helper()
	form := url.Values{"token": {v.token}, "digest": {v.w.details(id).Approvals[0].Digest}}
	_, text := v.post("/tasks/"+string(id)+"/approve", form)
	path := regexp.MustCompile(`/decisions/\w+`).FindString(text)
	if path == "" {
		v.w.t.Fatalf("no decision waits for a passkey: %s", text)
	}
	return path
}

func TestAFormWithoutASignatureLeavesThePasskeyItsTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visit(w.open())
	v.passkeyWithoutBrowser()
	w.send("t1", "deployer", `{"seconds": 0}`)
	w.state("t1", task.Held)
	path := v.approve("t1")
	if status, text := v.post(path, url.Values{"token": {v.token}, "credential": {""}}); status != http.StatusBadRequest {
		t.Errorf("POST %s = %d, %s; want 400", path, status, text)
	}
	if _, text := v.get(path); !strings.Contains(text, "Use your passkey") {
		t.Errorf("the decision is %s; want that it still waits for the passkey", text)
	}
}
