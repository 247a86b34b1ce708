package realagents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// sshKey makes a key and an ssh-agent that has it, and returns the public key.
func (b *box) sshKey() string {
	b.t.Helper()
	if _, err := exec.LookPath("ssh-agent"); err != nil {
		b.t.Skip("OpenSSH is not installed")
	}
	b.must(b.run(b.home, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key"))
	dir, err := os.MkdirTemp("", "ssh") // short: the path of a socket has a limit
	if err != nil {
		b.t.Fatal(err)
	}
	agent := exec.Command("ssh-agent", "-D", "-a", filepath.Join(dir, "s"))
	out, err := agent.StdoutPipe()
	if err == nil {
		err = agent.Start()
	}
	if err == nil {
		_, err = out.Read(make([]byte, 1)) // it prints the name of the socket once it listens
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait(); _ = os.RemoveAll(dir) })
	b.env = append(b.env, "SSH_AUTH_SOCK="+filepath.Join(dir, "s"))
	b.must(b.run(b.home, "ssh-add", "-q", "key"))
	return strings.TrimSpace(b.read("key.pub"))
}

// needProof has decisions made by a person with an SSH key alone.
func (b *box) needProof() {
	b.t.Helper()
	approvers := fmt.Sprintf("approvers: [{name: alice, uid: %d, proof: ssh, keys: [%q]}]\n", os.Getuid(), b.sshKey())
	b.write(configFile, "approval: {self: confirm}\n"+approvers+b.read(configFile))
}

// heldCall asks the agent, and returns the task once a call in it waits for a person.
func (b *box) heldCall(words string) (id string) {
	b.t.Helper()
	id = strings.TrimSpace(b.must(b.mailboxd(b.work, "ask", b.program.name, words, "--in", b.work)).out)
	for end := time.Now().Add(patience); !strings.Contains(b.mailboxd(b.work, "ps").out, "approval"); <-time.After(100 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("no call waits; ps says %+v", b.mailboxd(b.work, "ps"))
		}
	}
	return id
}

// checkProof verifies the signature of the approval of a call by other means.
func (b *box) checkProof(id string) {
	b.t.Helper()
	var shown struct {
		Approvals []struct {
			Stage string
			Proof struct{ Signed, Signature string }
		}
	}
	text := b.must(b.mailboxd(b.work, "show", id, "--json")).out
	if err := json.Unmarshal([]byte(text), &shown); err != nil || len(shown.Approvals) == 0 || shown.Approvals[0].Stage != "tool" {
		b.t.Fatalf("show prints %s, %v; want an approval of a call", text, err)
	}
	b.write("signature", shown.Approvals[0].Proof.Signature)
	b.write("signed", shown.Approvals[0].Proof.Signed)
	b.write("allowed", "alice "+b.read("key.pub"))
	verify := "ssh-keygen -Y verify -f allowed -I alice -n approval@mailboxd -s signature <signed"
	if out := b.must(b.run(b.home, "sh", "-c", verify)).out; !strings.Contains(out, "Good") {
		b.t.Errorf("ssh-keygen says %q", out)
	}
}

func TestAPersonApprovesACallOfARealAgentWithAnSSHKey(t *testing.T) {
	forEach(t, func(t *testing.T, b *box) {
		b.plain()
		b.hostedEntry("{otherwise: ask}")
		b.needProof()
		b.serve()
		b.model.Script(b.askedShellCall(), fakemodel.Text("I wrote shell.txt."))
		id := b.heldCall("Write shell.txt")
		if b.has("shell.txt") {
			t.Error("shell.txt is there before the approval")
		}
		b.must(b.mailboxd(b.work, "approve", id))
		b.must(b.mailboxd(b.work, "wait", id))
		if !b.has("shell.txt") {
			t.Error("shell.txt is not there after the approval")
		}
		b.checkProof(id)
	})
}
