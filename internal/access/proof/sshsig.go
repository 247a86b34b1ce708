package proof

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/ssh"

	"mailboxd/internal/decisions/task"
)

// The format of signatures is OpenSSH's PROTOCOL.sshsig; ssh-keygen -Y verify accepts them.
const (
	magic     = "SSHSIG"
	pemType   = "SSH SIGNATURE"
	version   = 1
	maxArmour = 16 << 10 // bytes of an armoured signature; an RSA key of 8192 bits needs 4 KiB
)

// signature is the blob in an armoured signature.
type signature struct {
	Magic     [6]byte
	Version   uint32
	PublicKey []byte
	Namespace string
	Reserved  string
	Hash      string
	Signature []byte
}

// signedData is what the key signs.
type signedData struct {
	Magic     [6]byte
	Namespace string
	Reserved  string
	Hash      string
	Digest    []byte
}

// Errors of Verify that callers tell apart.
var (
	ErrUnknownKey = errors.New("the signature's key isn't one of the approver's keys")
	ErrExpired    = errors.New("the signature has expired")
)

// Sign returns the armoured signature of a statement.
func Sign(signer ssh.Signer, s Statement) ([]byte, error) {
	data := dataToSign(s, "sha512", Namespace)
	signed, err := signWith(signer, data)
	if err != nil {
		return nil, fmt.Errorf("sign with %s: %w", ssh.FingerprintSHA256(signer.PublicKey()), err)
	}
	blob := signature{
		Magic: [6]byte([]byte(magic)), Version: version, PublicKey: signer.PublicKey().Marshal(),
		Namespace: Namespace, Hash: "sha512", Signature: ssh.Marshal(signed),
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: ssh.Marshal(blob)}), nil
}

// signWith signs with SHA-2, which PROTOCOL.sshsig asks of RSA keys.
func signWith(signer ssh.Signer, data []byte) (*ssh.Signature, error) {
	if able, ok := signer.(ssh.AlgorithmSigner); ok && signer.PublicKey().Type() == ssh.KeyAlgoRSA {
		return able.SignWithAlgorithm(rand.Reader, data, ssh.KeyAlgoRSASHA512)
	}
	return signer.Sign(rand.Reader, data)
}

// Verify checks an armoured signature of a statement by one of the keys, and returns what it
// proves: ProofPerson for a hardware key that was touched, ProofKey for any other. It doesn't
// look at the expiry of the statement; Approvers.Check does.
func Verify(s Statement, armoured []byte, keys []ssh.PublicKey) (task.ProofLevel, ssh.PublicKey, error) {
	blob, err := parse(armoured)
	if err != nil {
		return task.ProofNone, nil, err
	}
	at := slices.IndexFunc(keys, func(k ssh.PublicKey) bool { return bytes.Equal(k.Marshal(), blob.PublicKey) })
	if at < 0 {
		return task.ProofNone, nil, ErrUnknownKey
	}
	var signed ssh.Signature
	if err := ssh.Unmarshal(blob.Signature, &signed); err != nil {
		return task.ProofNone, nil, fmt.Errorf("parse signature: %w", err)
	}
	if signed.Format == ssh.KeyAlgoRSA {
		return task.ProofNone, nil, errors.New("the signature uses SHA-1: sign with rsa-sha2-512")
	}
	key := keys[at]
	if err := key.Verify(dataToSign(s, blob.Hash, blob.Namespace), &signed); err != nil {
		return task.ProofNone, nil, fmt.Errorf("the signature is not of this decision: %w", err)
	}
	return levelOf(key), key, nil
}

// levelOf returns what a valid signature of a key proves. Verify of a hardware key requires the
// flag of user presence.
func levelOf(key ssh.PublicKey) task.ProofLevel {
	if IsHardware(key) {
		return task.ProofPerson
	}
	return task.ProofKey
}

// IsHardware reports whether a key is one of a FIDO token, which signs when it is touched.
func IsHardware(key ssh.PublicKey) bool {
	return key.Type() == ssh.KeyAlgoSKED25519 || key.Type() == ssh.KeyAlgoSKECDSA256
}

// FingerprintOf returns the SHA-256 fingerprint of the key that a signature of a kind names; ""
// if it can't be read. That of a passkey is the fingerprint of its credential's id.
func FingerprintOf(kind, armoured string) string {
	if kind == KindPasskey {
		a, err := parseAssertion([]byte(armoured))
		if err != nil {
			return ""
		}
		sum := sha256.Sum256(a.id)
		return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
	}
	blob, err := parse([]byte(armoured))
	if err != nil {
		return ""
	}
	key, err := ssh.ParsePublicKey(blob.PublicKey)
	if err != nil {
		return ""
	}
	return ssh.FingerprintSHA256(key)
}

// parse reads an armoured signature.
func parse(armoured []byte) (signature, error) {
	if len(armoured) > maxArmour {
		return signature{}, fmt.Errorf("parse signature: longer than %d bytes", maxArmour)
	}
	block, rest := pem.Decode(armoured)
	if block == nil || block.Type != pemType || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 {
		return signature{}, fmt.Errorf("parse signature: not one block of %q", pemType)
	}
	var blob signature
	if err := ssh.Unmarshal(block.Bytes, &blob); err != nil {
		return signature{}, fmt.Errorf("parse signature: %w", err)
	}
	switch {
	case string(blob.Magic[:]) != magic || blob.Version != version:
		return signature{}, errors.New("parse signature: not version 1 of SSHSIG")
	case blob.Namespace != Namespace:
		return signature{}, fmt.Errorf("the signature is for %q, and not for %q", blob.Namespace, Namespace)
	case blob.Hash != "sha256" && blob.Hash != "sha512":
		return signature{}, fmt.Errorf("parse signature: unknown hash %q", blob.Hash)
	}
	return blob, nil
}

func dataToSign(s Statement, hash, namespace string) []byte {
	var sum []byte
	if hash == "sha256" {
		digest := sha256.Sum256(s.Encode())
		sum = digest[:]
	} else {
		digest := sha512.Sum512(s.Encode())
		sum = digest[:]
	}
	return ssh.Marshal(signedData{Magic: [6]byte([]byte(magic)), Namespace: namespace, Hash: hash, Digest: sum})
}
