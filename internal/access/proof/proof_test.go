package proof_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"mailboxd/envelope"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/decisions/task"
)

var statement = proof.Statement{
	Mailbox: "8c6f", Task: "t1", Revision: 2, Stage: envelope.ApprovalPre, Decision: task.Approved,
	Digest: strings.Repeat("ab", 32), Asked: time.Date(2026, 11, 22, 12, 0, 0, 123456000, time.UTC), Expires: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC),
}

func newSigner(t *testing.T, key crypto.Signer) ssh.Signer {
	t.Helper()
	signer, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func ed25519Signer(t *testing.T) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return newSigner(t, key)
}

// A softToken is a FIDO token in software: it signs as a hardware key does (PROTOCOL.u2f), with
// the flags that it is told.
type softToken struct {
	key    ed25519.PrivateKey
	public ssh.PublicKey
	flags  byte
}

const application = "ssh:"

func newSoftToken(t *testing.T, flags byte) *softToken {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	wire := ssh.Marshal(struct{ Format, Key, Application string }{ssh.KeyAlgoSKED25519, string(public), application})
	parsed, err := ssh.ParsePublicKey(wire)
	if err != nil {
		t.Fatal(err)
	}
	return &softToken{key, parsed, flags}
}

func (s *softToken) PublicKey() ssh.PublicKey { return s.public }

func (s *softToken) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) {
	app, message := sha256.Sum256([]byte(application)), sha256.Sum256(data)
	counter := binary.BigEndian.AppendUint32([]byte{s.flags}, 7)
	signed := bytes.Join([][]byte{app[:], counter, message[:]}, nil)
	return &ssh.Signature{Format: ssh.KeyAlgoSKED25519, Blob: ed25519.Sign(s.key, signed), Rest: counter}, nil
}

func TestASignatureIsOfOneDecisionAlone(t *testing.T) {
	signer := ed25519Signer(t)
	signed, err := proof.Sign(signer, statement)
	if err != nil {
		t.Fatal(err)
	}
	keys := []ssh.PublicKey{ed25519Signer(t).PublicKey(), signer.PublicKey()}
	if level, _, err := proof.Verify(statement, signed, keys); err != nil || level != task.ProofKey {
		t.Errorf("Verify = %v, %v; want ssh, nil", level, err)
	}
	for name, change := range map[string]func(*proof.Statement){
		"mailbox":  func(s *proof.Statement) { s.Mailbox = "another" },
		"task":     func(s *proof.Statement) { s.Task = "t2" },
		"revision": func(s *proof.Statement) { s.Revision = 3 },
		"stage":    func(s *proof.Statement) { s.Stage = envelope.ApprovalPost },
		"decision": func(s *proof.Statement) { s.Decision = task.Denied },
		"digest":   func(s *proof.Statement) { s.Digest = strings.Repeat("ba", 32) },
		"question": func(s *proof.Statement) { s.Asked = s.Asked.Add(time.Microsecond) },
		"expiry":   func(s *proof.Statement) { s.Expires = s.Expires.Add(time.Hour) },
	} {
		other := statement
		change(&other)
		if level, _, err := proof.Verify(other, signed, keys); err == nil || level != task.ProofNone {
			t.Errorf("a signature also counts for another %s", name)
		}
	}
	if _, _, err := proof.Verify(statement, signed, keys[:1]); !errors.Is(err, proof.ErrUnknownKey) {
		t.Errorf("Verify without the key = %v; want ErrUnknownKey", err)
	}
}

func TestAStatementIsOneLineForEachField(t *testing.T) {
	const rest = "task: t1\nrevision: 2\nstage: pre\ndecision: approved\ndigest: abc\nasked: 2026-11-22T12:00:00.123456Z\nexpires: 2026-11-23T12:00:00Z\n"
	for mailbox, want := range map[string]string{
		"a b~": "a b~", `say "x"`: `"say \"x\""`, "two\nlines": `"two\nlines"`, "caf\u00e9": `"café"`, "end\x7f": `"end\x7f"`,
	} {
		s := statement
		s.Mailbox, s.Digest = mailbox, "abc"
		if got := string(s.Encode()); got != "mailboxd approval 1\nmailbox: "+want+"\n"+rest {
			t.Errorf("the statement of %q is\n%s\nwant the mailbox as %s", mailbox, got, want)
		}
	}
}

func TestASignatureMayBePaddedUpToItsLimit(t *testing.T) {
	signer := ed25519Signer(t)
	signed, err := proof.Sign(signer, statement)
	if err != nil {
		t.Fatal(err)
	}
	for size, fits := range map[int]bool{16 << 10: true, 16<<10 + 1: false} {
		padded := append(bytes.Clone(signed), bytes.Repeat([]byte("\n"), size-len(signed))...)
		if _, _, err := proof.Verify(statement, padded, []ssh.PublicKey{signer.PublicKey()}); (err == nil) != fits {
			t.Errorf("a signature of %d bytes: %v; want it to count: %t", size, err, fits)
		}
	}
}

func TestTheFingerprintOfASignatureIsThatOfItsKey(t *testing.T) {
	signer := ed25519Signer(t)
	signed, err := proof.Sign(signer, statement)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := proof.FingerprintOf(proof.KindSSH, string(signed)), ssh.FingerprintSHA256(signer.PublicKey()); got != want {
		t.Errorf("FingerprintOf = %q; want %q", got, want)
	}
	for _, kind := range []string{proof.KindSSH, proof.KindPasskey} {
		if got := proof.FingerprintOf(kind, "nonsense"); got != "" {
			t.Errorf("FingerprintOf(%s, nonsense) = %q; want none", kind, got)
		}
	}
}

func TestOnlyATouchedHardwareKeyProvesAPerson(t *testing.T) {
	for _, c := range []struct {
		flags byte
		want  task.ProofLevel
	}{{1, task.ProofPerson}, {5, task.ProofPerson}, {0, task.ProofNone}, {4, task.ProofNone}} {
		token := newSoftToken(t, c.flags)
		signed, err := proof.Sign(token, statement)
		if err != nil {
			t.Fatal(err)
		}
		level, _, err := proof.Verify(statement, signed, []ssh.PublicKey{token.PublicKey()})
		if level != c.want || (err == nil) != (c.want == task.ProofPerson) {
			t.Errorf("flags %d: Verify = %v, %v; want %v", c.flags, level, err, c.want)
		}
	}
}

func TestAHostileSignatureIsRefused(t *testing.T) {
	signer := ed25519Signer(t)
	signed, err := proof.Sign(signer, statement)
	if err != nil {
		t.Fatal(err)
	}
	keys := []ssh.PublicKey{signer.PublicKey()}
	text := string(signed)
	for name, hostile := range map[string]string{
		"nothing":        "",
		"two blocks":     text + text,
		"another block":  strings.ReplaceAll(text, "SSH SIGNATURE", "PRIVATE KEY"),
		"cut":            text[:len(text)/2],
		"very long":      strings.Repeat(text, 100),
		"an empty block": "-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----\n",
	} {
		if _, _, err := proof.Verify(statement, []byte(hostile), keys); err == nil {
			t.Errorf("%s counts as a signature", name)
		}
	}
}

func FuzzVerifyTakesNoOtherBytes(f *testing.F) {
	signer := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	s, err := ssh.NewSignerFromSigner(signer)
	if err != nil {
		f.Fatal(err)
	}
	other := statement
	other.Task = "t2"
	signed, err := proof.Sign(s, other)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed)
	f.Add([]byte("-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----\n"))
	f.Fuzz(func(t *testing.T, armoured []byte) {
		if level, _, err := proof.Verify(statement, armoured, []ssh.PublicKey{s.PublicKey()}); err == nil || level != task.ProofNone {
			t.Errorf("%q counts", armoured)
		}
	})
}

// needsOpenSSH skips a test where OpenSSH isn't installed.
func needsOpenSSH(t *testing.T) {
	t.Helper()
	for _, program := range []string{"ssh-keygen", "ssh-agent", "ssh-add"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
}

func run(t *testing.T, stdin io.Reader, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = stdin
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// verifyByOpenSSH has ssh-keygen verify a signature.
func verifyByOpenSSH(t *testing.T, key ssh.PublicKey, signed []byte) {
	t.Helper()
	dir := t.TempDir()
	allowed, file := filepath.Join(dir, "allowed"), filepath.Join(dir, "sig")
	line := "ada " + string(ssh.MarshalAuthorizedKey(key))
	if err := errors.Join(os.WriteFile(allowed, []byte(line), 0o600), os.WriteFile(file, signed, 0o600)); err != nil {
		t.Fatal(err)
	}
	run(t, bytes.NewReader(statement.Encode()), "ssh-keygen", "-Y", "verify", "-f", allowed, "-I", "ada", "-n", proof.Namespace, "-s", file)
}

func TestOpenSSHAcceptsTheSignatures(t *testing.T) {
	needsOpenSSH(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, signer := range map[string]ssh.Signer{
		"ed25519": ed25519Signer(t), "rsa": newSigner(t, rsaKey), "hardware key": newSoftToken(t, 1),
	} {
		t.Run(name, func(t *testing.T) {
			signed, err := proof.Sign(signer, statement)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := proof.Verify(statement, signed, []ssh.PublicKey{signer.PublicKey()}); err != nil {
				t.Error(err)
			}
			verifyByOpenSSH(t, signer.PublicKey(), signed)
		})
	}
}

func TestASignatureOfAnotherNamespaceIsRefused(t *testing.T) {
	needsOpenSSH(t)
	dir := t.TempDir()
	key, text := filepath.Join(dir, "key"), filepath.Join(dir, "text")
	run(t, nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	public := readKey(t, key+".pub")
	if err := os.WriteFile(text, statement.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		namespace, hash string
		refused         bool
	}{{"git", "sha512", true}, {"file", "sha512", true}, {proof.Namespace, "sha512", false}, {proof.Namespace, "sha256", false}} {
		run(t, nil, "ssh-keygen", "-Y", "sign", "-f", key, "-n", c.namespace, "-O", "hashalg="+c.hash, text)
		signed, err := os.ReadFile(text + ".sig")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := proof.Verify(statement, signed, []ssh.PublicKey{public}); (err != nil) != c.refused {
			t.Errorf("a signature by ssh-keygen for %q with %s: %v; want refused %t", c.namespace, c.hash, err, c.refused)
		}
		if err := os.Remove(text + ".sig"); err != nil {
			t.Fatal(err)
		}
	}
}

func readKey(t *testing.T, file string) ssh.PublicKey {
	t.Helper()
	line, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key, err := proof.ParseKey(string(line))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// startAgent starts an ssh-agent, and returns its socket.
func startAgent(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // shorter than t.TempDir: a socket's path has a limit
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "ssh-agent", "-D", "-a", socket)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = cmd.Wait(); _ = os.RemoveAll(dir) })
	if _, err := out.Read(make([]byte, 1)); err != nil { // it prints the socket's name once it listens
		t.Fatal(err)
	}
	return socket
}

func TestAnAgentSignsWithAKeyOfTheApprover(t *testing.T) {
	needsOpenSSH(t)
	socket, key := startAgent(t), filepath.Join(t.TempDir(), "key")
	run(t, nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	public := readKey(t, key+".pub")
	if _, err := proof.SignByAgent(t.Context(), socket, []string{proof.Line(public)}, statement); err == nil || !strings.Contains(err.Error(), "ssh-add") {
		t.Errorf("SignByAgent without the key = %v; want what to do", err)
	}
	t.Setenv("SSH_AUTH_SOCK", socket)
	run(t, nil, "ssh-add", "-q", key)
	signed, err := proof.SignByAgent(t.Context(), socket, []string{proof.Line(ed25519Signer(t).PublicKey()), proof.Line(public)}, statement)
	if err != nil {
		t.Fatal(err)
	}
	if level, _, err := proof.Verify(statement, signed, []ssh.PublicKey{public}); err != nil || level != task.ProofKey {
		t.Errorf("Verify = %v, %v; want ssh, nil", level, err)
	}
}

func TestAnAgentThatIsGoneIsSaid(t *testing.T) {
	for _, socket := range []string{"", filepath.Join(t.TempDir(), "gone")} {
		if _, err := proof.SignByAgent(t.Context(), socket, nil, statement); !errors.Is(err, proof.ErrNoAgent) {
			t.Errorf("SignByAgent(%q) = %v; want ErrNoAgent", socket, err)
		}
	}
}

func TestAnAgentThatNeverAnswersCanBeLeft(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := proof.SignByAgent(ctx, socket, nil, statement); err == nil {
		t.Error("SignByAgent with an agent that never answers has no error")
	}
}

func TestAKeyIsOneLineWithoutOptions(t *testing.T) {
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(newSoftToken(t, 1).PublicKey())))
	if _, err := proof.ParseKey(line + " ada@desk"); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"", "hello", "no-touch-required " + line, line + "\n" + line, "# " + line} {
		if _, err := proof.ParseKey(wrong); err == nil {
			t.Errorf("ParseKey(%q) has no error", wrong)
		}
	}
}
