package remote

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/running/dial"
)

// A protectedHeader is the part of a signature that is signed too: RFC 7515, section 4.1.
type protectedHeader struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	KeySet    string `json:"jku"`
	Key       *jwk   `json:"jwk"`
}

// A jwk is a public key: RFC 7517, with the curves of RFC 8037.
type jwk struct {
	ID    string `json:"kid"`
	Type  string `json:"kty"`
	Curve string `json:"crv"`
	X     string `json:"x"`
	Y     string `json:"y"`
	N     string `json:"n"`
	E     string `json:"e"`
}

// verify verifies the signatures of a card whose keys are in the signature or at the host of the agent. Other
// keys are at addresses that no configuration has, so their signatures say nothing. It reports whether one verified.
func verify(ctx context.Context, client *http.Client, at *url.URL, all []a2a.AgentCardSignature, text []byte) (signed bool, err error) {
	for i, s := range all {
		var h protectedHeader
		if err := json.Unmarshal(decode(s.Protected), &h); err != nil {
			return false, fmt.Errorf("its signature %d has no header: %w", i+1, err)
		}
		key, err := h.find(ctx, client, at)
		if err != nil {
			return false, fmt.Errorf("the key of its signature %d: %w", i+1, err)
		}
		if key == nil {
			continue
		}
		if !verifies(h.Algorithm, *key, s, text) {
			return false, fmt.Errorf("its signature %d doesn't verify", i+1)
		}
		signed = true
	}
	return signed, nil
}

// algorithms are those that verify knows.
var algorithms = []string{"ES256", "EdDSA", "RS256"}

// find returns the key of a signature; nil if it is elsewhere, or of another algorithm.
func (h protectedHeader) find(ctx context.Context, client *http.Client, at *url.URL) (*jwk, error) {
	switch {
	case !slices.Contains(algorithms, h.Algorithm):
		return nil, nil
	case h.Key != nil || h.KeySet == "":
		return h.Key, nil
	}
	from, err := url.Parse(h.KeySet)
	if err != nil || !dial.SameOrigin(at, from) {
		return nil, nil
	}
	text, err := get(ctx, client, from)
	if err != nil {
		return nil, err
	}
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, err
	}
	for _, key := range set.Keys {
		if key.ID == h.KeyID {
			return &key, nil
		}
	}
	return nil, fmt.Errorf("%.200q isn't at %.200s", h.KeyID, h.KeySet)
}

// verifies reports whether a signature is that of a card. Programs leave out different empty members before they sign.
func verifies(algorithm string, key jwk, s a2a.AgentCardSignature, text []byte) bool {
	for _, empty := range []func(any) bool{
		func(any) bool { return false },
		func(v any) bool { return isEmpty(v) && v != false },
		isEmpty,
	} {
		payload, err := unsigned(text, empty)
		if err != nil {
			return false
		}
		signed := s.Protected + "." + base64.RawURLEncoding.EncodeToString(payload)
		if key.verify(algorithm, []byte(signed), decode(s.Signature)) == nil {
			return true
		}
	}
	return false
}

// unsigned returns the canonical JSON of a card without its signatures and without empty members: RFC 8785.
func unsigned(text []byte, empty func(any) bool) ([]byte, error) {
	var card map[string]any
	if err := json.Unmarshal(text, &card); err != nil {
		return nil, err
	}
	delete(card, "signatures")
	bare, err := json.Marshal(without(card, empty))
	if err != nil {
		return nil, err
	}
	canonical := jsontext.Value(bare)
	return canonical, canonical.Canonicalize()
}

// without removes empty members.
func without(v any, empty func(any) bool) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if inner = without(inner, empty); empty(inner) {
				delete(v, name)
			} else {
				v[name] = inner
			}
		}
	case []any:
		for i := range v {
			v[i] = without(v[i], empty)
		}
	}
	return v
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

var errSignature = errors.New("the signature doesn't verify")

// verify verifies a signature: RFC 7518, section 3, and RFC 8037, section 3.1.
func (k jwk) verify(algorithm string, signed, signature []byte) error {
	sum := sha256.Sum256(signed)
	switch {
	case algorithm == "ES256" && k.Curve == "P-256" && len(signature) == 64:
		point := append(append([]byte{4}, padded(k.X)...), padded(k.Y)...)
		key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
		if err != nil {
			return err
		}
		r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
		if ecdsa.Verify(key, sum[:], r, s) {
			return nil
		}
	case algorithm == "EdDSA" && k.Curve == "Ed25519":
		if key := decode(k.X); len(key) == ed25519.PublicKeySize && ed25519.Verify(key, signed, signature) {
			return nil
		}
	case algorithm == "RS256" && k.Type == "RSA":
		e := new(big.Int).SetBytes(decode(k.E))
		if !e.IsInt64() || e.Int64() > 1<<31-1 {
			return errSignature
		}
		key := &rsa.PublicKey{N: new(big.Int).SetBytes(decode(k.N)), E: int(e.Int64())}
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature)
	}
	return errSignature
}

// padded returns a number of a curve as 32 bytes.
func padded(text string) []byte {
	n := new(big.Int).SetBytes(decode(text))
	if n.BitLen() > 256 {
		return nil
	}
	return n.FillBytes(make([]byte, 32))
}

// decode decodes base64url; nil for anything else.
func decode(text string) []byte {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return b
}
