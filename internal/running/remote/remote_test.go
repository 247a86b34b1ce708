package remote_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"mailboxd/internal/running/remote"
)

var encode = base64.RawURLEncoding.EncodeToString

// signer makes the signature of a text, and the key set that verifies it.
type signer struct {
	algorithm string
	set       string
	sign      func(text []byte) []byte
}

const ellipticKey = `{"kid":"k","kty":"EC","crv":"P-256","x":%q,"y":%q}`

func signers(t *testing.T) []signer {
	t.Helper()
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := curve.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	factors, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return []signer{
		{"ES256", fmt.Sprintf(ellipticKey, encode(point[1:33]), encode(point[33:])), func(text []byte) []byte {
			sum := sha256.Sum256(text)
			r, s, err := ecdsa.Sign(rand.Reader, curve, sum[:])
			if err != nil {
				t.Fatal(err)
			}
			return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
		}},
		{"RS256", fmt.Sprintf(`{"kid":"k","kty":"RSA","n":%q,"e":"AQAB"}`, encode(factors.N.Bytes())), func(text []byte) []byte {
			sum := sha256.Sum256(text)
			signature, err := rsa.SignPKCS1v15(rand.Reader, factors, crypto.SHA256, sum[:])
			if err != nil {
				t.Fatal(err)
			}
			return signature
		}},
	}
}

// serveSigned serves a card whose signature has its key in a set at an address; "" for the same host.
func serveSigned(t *testing.T, by signer, wrong, jku string) *url.URL {
	t.Helper()
	var at string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" {
			fmt.Fprintf(w, `{"keys":[%s]}`, by.set)
			return
		}
		from := jku
		if from == "" {
			from = at + "/keys"
		}
		card := fmt.Sprintf(`{"name":"a","supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"%s/x"}]}`, at)
		header := encode(fmt.Appendf(nil, `{"alg":%q,"kid":"k","jku":%q}`, by.algorithm, from))
		signature := encode(by.sign([]byte(header + "." + encode([]byte(card+wrong)))))
		fmt.Fprintf(w, `%s,"signatures":[{"protected":%q,"signature":%q}]}`, strings.TrimSuffix(card, "}"), header, signature)
	}))
	t.Cleanup(s.Close)
	at = s.URL
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestASignatureIsVerifiedWithAKeyAtTheHostOfTheAgentAlone(t *testing.T) {
	for _, by := range signers(t) {
		if c, err := remote.ReadCard(t.Context(), http.DefaultClient, serveSigned(t, by, "", "")); err != nil || !c.Signed {
			t.Errorf("%s: %v; want a signature that verifies", by.algorithm, err)
		}
		if _, err := remote.ReadCard(t.Context(), http.DefaultClient, serveSigned(t, by, " ", "")); !errors.Is(err, remote.ErrCard) {
			t.Errorf("%s of another text: %v; want it refused", by.algorithm, err)
		}
		elsewhere := serveSigned(t, by, " ", "https://keys.example.com/keys")
		if c, err := remote.ReadCard(t.Context(), http.DefaultClient, elsewhere); err != nil || c.Signed {
			t.Errorf("%s with a key elsewhere: %v; want it not looked at", by.algorithm, err)
		}
	}
}

func TestACardThatCannotBeReadIsNoneThatHasChanged(t *testing.T) {
	dir, reads := filepath.Join(t.TempDir(), "cards"), 0
	digest, failure := "one", error(nil)
	read := func(context.Context) (remote.Card, error) {
		reads++
		return remote.Card{Digest: digest}, failure
	}
	known := &remote.Known{Dir: dir}
	if got := known.Digest("https://a", read); got != "one" {
		t.Errorf("digest = %q; want that of the card", got)
	}
	if digest = "two"; known.Digest("https://a", read) != "one" || reads != 1 {
		t.Errorf("after %d reads it is another one; want that a look counts for a while", reads)
	}
	if known.Look("https://a", read); known.Digest("https://a", read) != "two" {
		t.Error("after a look it is the first one; want the second")
	}
	failure = errors.New("not there")
	later := &remote.Known{Dir: dir}
	if got := later.Digest("https://a", read); got != "two" {
		t.Errorf("after a restart, digest = %q; want the last one that was read", got)
	}
	if got := later.Digest("https://b", read); got != "" {
		t.Errorf("digest = %q; want none of a card that was never read", got)
	}
}

func TestNamesOfFilesStayInTheirDirectory(t *testing.T) {
	dir := t.TempDir()
	var artifacts []*a2a.Artifact
	for _, name := range []string{
		"../../up", "/etc/passwd", `C:\x.txt`, "", ".", "..", "-rf", "a b\n", strings.Repeat("x", 300), "same.bin", "same.bin", "2-same.bin",
	} {
		part := a2a.NewRawPart([]byte("secret"))
		part.Filename = name
		artifacts = append(artifacts, &a2a.Artifact{Parts: a2a.ContentParts{part}})
	}
	o, err := remote.Save(dir, artifacts, func(text []byte) []byte { return bytes.ReplaceAll(text, []byte("secret"), nil) })
	if err != nil || len(o.Files) != len(artifacts) {
		t.Fatalf("files %q, %v; want one for each part", o.Files, err)
	}
	for _, path := range o.Files {
		if filepath.Dir(path) != filepath.Join(dir, remote.Dir) || len(filepath.Base(path)) > 110 {
			t.Errorf("%s isn't a short name in the directory", path)
		}
	}
	if all := slices.Compact(slices.Sorted(slices.Values(o.Files))); len(all) != len(artifacts) {
		t.Errorf("files %q; want another name for each", o.Files)
	}
	if _, err := remote.Save(t.TempDir(), slices.Repeat(artifacts, 100), bytes.Clone); !errors.Is(err, remote.ErrTooMany) {
		t.Errorf("1,100 files: %v; want an error", err)
	}
}
