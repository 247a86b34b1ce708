package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/running/dial"
)

// algorithms are those of the signatures that are verified.
var algorithms = []jose.SignatureAlgorithm{jose.ES256, jose.EdDSA, jose.RS256}

// verify verifies the signatures of a card whose keys are in the signature or at the host of the agent. Other
// keys are at addresses that no configuration has, so their signatures say nothing. It reports whether one verified.
func verify(ctx context.Context, client *http.Client, at *url.URL, all []a2a.AgentCardSignature, text []byte) (signed bool, err error) {
	for i, s := range all {
		jws, err := jose.ParseDetached(s.Protected+".."+s.Signature, []byte{}, algorithms)
		if _, other := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); other {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("its signature %d can't be read: %w", i+1, err)
		}
		key, err := find(ctx, client, at, jws.Signatures[0].Protected)
		if err != nil {
			return false, fmt.Errorf("the key of its signature %d: %w", i+1, err)
		}
		if key == nil {
			continue
		}
		if !verifies(jws, key, text) {
			return false, fmt.Errorf("its signature %d doesn't verify", i+1)
		}
		signed = true
	}
	return signed, nil
}

// find returns the key that the header of a signature names; nil if it is elsewhere.
func find(ctx context.Context, client *http.Client, at *url.URL, header jose.Header) (*jose.JSONWebKey, error) {
	if header.JSONWebKey != nil {
		return header.JSONWebKey, nil
	}
	address, _ := header.ExtraHeaders["jku"].(string)
	from, err := url.Parse(address)
	if err != nil || !dial.SameOrigin(at, from) {
		return nil, nil
	}
	text, err := get(ctx, client, from)
	if err != nil {
		return nil, err
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, err
	}
	for _, key := range set.Key(header.KeyID) {
		return &key, nil
	}
	return nil, fmt.Errorf("%.200q isn't at %.200s", header.KeyID, address)
}

// verifies reports whether a signature is that of a card. Programs leave out different empty members before they sign.
func verifies(jws *jose.JSONWebSignature, key *jose.JSONWebKey, text []byte) bool {
	for _, empty := range []func(any) bool{
		func(any) bool { return false },
		func(v any) bool { return isEmpty(v) && v != false },
		isEmpty,
	} {
		payload, err := unsigned(text, empty)
		if err != nil {
			return false
		}
		if jws.DetachedVerify(payload, key) == nil {
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
