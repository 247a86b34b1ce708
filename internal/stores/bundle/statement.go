package bundle

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"mailboxd/internal/stores/seal"
)

// What the signed statement of a bundle is made of.
const (
	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "urn:mailboxd:run:1"
)

// A statement is an in-toto Statement v1 about the manifest.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	Run     string `json:"run"`
	Mailbox string `json:"mailbox"`
}

// statementOf returns the statement about a manifest with a digest.
func statementOf(m Manifest, digest string) statement {
	return statement{
		Type: statementType, Subject: []subject{{manifestName, map[string]string{"sha256": digest}}},
		PredicateType: predicateType, Predicate: predicate{m.Run, m.Mailbox},
	}
}

// sign returns the signed statement about a manifest, as DSSE has it.
func sign(ctx context.Context, by seal.Signer, m Manifest, digest string) ([]byte, error) {
	body, err := encode(statementOf(m, digest))
	if err != nil {
		return nil, err
	}
	signer, err := dsse.NewEnvelopeSigner(dsseSigner{by})
	if err != nil {
		return nil, err
	}
	envelope, err := signer.SignPayload(ctx, payloadType, body)
	if err != nil {
		return nil, fmt.Errorf("sign bundle: %w", err)
	}
	return encode(envelope)
}

// verifyStatement checks that one of the keys signed the statement about a manifest, and returns the id of that key.
// Its error wraps errNoKey if the statement names another key.
func verifyStatement(ctx context.Context, signed []byte, keys seal.Keys, m Manifest, digest string) (key string, err error) {
	var envelope dsse.Envelope
	if err := json.Unmarshal(signed, &envelope, json.RejectUnknownMembers(true)); err != nil {
		return "", fmt.Errorf("read statement: %w", err)
	}
	if again, err := encode(envelope); err != nil || !bytes.Equal(again, signed) || len(envelope.Signatures) != 1 {
		return "", errors.New("the statement is not written as mailboxd writes it")
	}
	want, err := encode(statementOf(m, digest))
	if err != nil {
		return "", err
	}
	key = envelope.Signatures[0].KeyID
	public, known := keys[key]
	if !known {
		return key, fmt.Errorf("%w: %.40q", errNoKey, key)
	}
	verifier, err := dsse.NewEnvelopeVerifier(dsseVerifier{key, public})
	if err != nil {
		return key, err
	}
	_, body, err := verifier.VerifyAndDecode(ctx, &envelope)
	switch {
	case err != nil:
		return key, fmt.Errorf("the signature of key %.40q is wrong", key)
	case envelope.PayloadType != payloadType || !bytes.Equal(body, want):
		return key, errors.New("the statement is about another manifest")
	}
	return key, nil
}

// errNoKey says that a signature is of a key that was not given.
var errNoKey = errors.New("the key of the signature was not given")

// A dsseSigner signs for package dsse.
type dsseSigner struct{ seal.Signer }

// Sign signs data.
func (s dsseSigner) Sign(_ context.Context, data []byte) ([]byte, error) { return s.Signer.Sign(data) }

// KeyID returns the id of the key.
func (s dsseSigner) KeyID() (string, error) { return s.Key(), nil }

// A dsseVerifier verifies for package dsse.
type dsseVerifier struct {
	id  string
	key ed25519.PublicKey
}

// Verify checks a signature of data.
func (v dsseVerifier) Verify(_ context.Context, data, signature []byte) error {
	if !ed25519.Verify(v.key, data, signature) {
		return errors.New("signature is wrong")
	}
	return nil
}

// KeyID returns the id of the key.
func (v dsseVerifier) KeyID() (string, error) { return v.id, nil }

// Public returns the key.
func (v dsseVerifier) Public() crypto.PublicKey { return v.key }

// encode returns a value as JSON in one line: the same bytes for the same value.
func encode(v any) ([]byte, error) {
	text, err := json.Marshal(v, json.Deterministic(true))
	return append(text, '\n'), err
}

func hexOf(sum [32]byte) string { return hex.EncodeToString(sum[:]) }
