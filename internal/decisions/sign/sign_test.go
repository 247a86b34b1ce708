package sign_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/sign"
	"mailboxd/internal/stores/seal"
)

// keyOf is a private key that is the same in every test.
func keyOf(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune('a'+n)), ed25519.SeedSize)))
}

func publicOf(n byte) ed25519.PublicKey { return seal.PrivateKey(keyOf(n)).Public() }

// request is a request of ui in Clutch; members come at its end.
func request(members string) string {
	return `{"v":"clutch/0.1","id":"msg_1","ts":"2026-02-01T13:20:11.123Z","thread_id":"thr_1","run_id":"run_1","task_id":"t1",` +
		`"from":{"agent_id":"agent:ui"},"to":[{"agent_id":"agent:ken"}],"type":"task.request","domain":"finance",` +
		`"payload":{"n":9007199254740992}` + members + `}`
}

func auth(kid, sig string) string {
	return fmt.Sprintf(`,"security":{"auth":{"scheme":"ed25519","kid":%q,"sig":%q}}`, kid, sig)
}

// signed is a request that a key signed.
func signed(t *testing.T, kid string, n byte, members string) string {
	t.Helper()
	text, err := sign.Text([]byte(request(members + auth(kid, "x"))))
	if err != nil {
		t.Fatal(err)
	}
	return request(members + auth(kid, base64.RawURLEncoding.EncodeToString(ed25519.Sign(keyOf(n), text))))
}

func read(t *testing.T, line string) envelope.Message {
	t.Helper()
	codec, _ := dialect.Of(envelope.Clutch)
	m, findings := codec.Decode([]byte(line), envelope.Strict)
	if findings.Refused() {
		t.Fatalf("%s: %v", line, findings)
	}
	return m
}

var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// keys are two keys of ui, as in a rotation, one that has expired, and one that isn't valid yet.
var keys = map[string][]sign.Key{"ui": {
	{ID: "old", Public: publicOf(1), NotAfter: now.Add(time.Hour)},
	{ID: "new", Public: publicOf(2), NotBefore: now.Add(-time.Hour)},
	{ID: "expired", Public: publicOf(3), NotAfter: now.Add(-time.Second)},
	{ID: "early", Public: publicOf(4), NotBefore: now.Add(time.Second)},
}}

func TestASignatureOfAKeyOfTheSenderIsVerified(t *testing.T) {
	for name, c := range map[string]struct{ line, refused string }{
		"the first key of a rotation":  {signed(t, "old", 1, ""), ""},
		"the second key of a rotation": {signed(t, "new", 2, ""), ""},
		"other members":                {signed(t, "old", 1, `,"meta":{"é":[1.0,"\u20ac"]}`), ""},
		"a key that has expired":       {signed(t, "expired", 3, ""), "expired at 2026-06-01T11:59:59Z"},
		"a key that isn't valid yet":   {signed(t, "early", 4, ""), "valid from 2026-06-01T12:00:01Z"},
		"a key with another name":      {signed(t, "older", 1, ""), `no such key`},
		"the name of another key":      {signed(t, "new", 1, ""), "wrong"},
		"a byte that was changed":      {strings.Replace(signed(t, "old", 1, ""), "finance", "finances", 1), "wrong"},
		"a member that was added":      {strings.Replace(signed(t, "old", 1, ""), `"type"`, `"attempt":2,"type"`, 1), "wrong"},
		"a number that changes": {
			strings.Replace(signed(t, "old", 1, ""), "740992", "740993", 1), "9007199254740993 would become 9007199254740992",
		},
		"a signature in hex":          {request(auth("old", strings.Repeat("ab", 64))), "base64"},
		"a short signature":           {request(auth("old", "c2ln")), "base64"},
		"a long signature":            {request(auth("old", strings.Repeat("A", 1<<16))), "base64"},
		"a signature of zeros":        {request(auth("old", strings.Repeat("A", 86))), "wrong"},
		"no signature beside the key": {request(`,"security":{"auth":{"scheme":"ed25519","kid":"old"}}`), "base64"},
		"no key beside the signature": {request(`,"security":{"auth":{"scheme":"ed25519","sig":"c2ln"}}`), "no such key"},
		"another scheme":              {strings.Replace(signed(t, "old", 1, ""), `"scheme":"ed25519"`, `"scheme":"none"`, 1), `scheme "none"`},
		"no scheme":                   {strings.Replace(signed(t, "old", 1, ""), `"scheme":"ed25519",`, ``, 1), `scheme ""`},
		"a huge name of a key":        {request(auth(strings.Repeat("k", 1<<16), "c2ln")), "no such key"},
	} {
		verified, err := sign.Rules{Keys: keys}.Check(read(t, c.line), now)
		if verified != (c.refused == "") || (err == nil) != verified || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: verified %t, %v; want %q", name, verified, err, c.refused)
		}
		if err != nil && len(err.Error()) > 250 {
			t.Errorf("%s: the reason has %d bytes", name, len(err.Error()))
		}
	}
}

func TestTheLayoutOfASignedLineDoesNotCount(t *testing.T) {
	text := signed(t, "old", 1, "")
	moved := strings.Replace(text, `"v":"clutch/0.1",`, "", 1)
	moved = strings.TrimSuffix(moved, "}") + ` , "v" : "clutch\/0.1" }`
	for _, same := range []string{text, moved, strings.Replace(text, "9007199254740992", "9007199254740992.0", 1)} {
		if verified, err := (sign.Rules{Keys: keys}).Check(read(t, same), now); !verified || err != nil {
			t.Errorf("%s: verified %t, %v", same, verified, err)
		}
	}
}

func TestASignatureIsBase64InAnyForm(t *testing.T) {
	text, err := sign.Text([]byte(request(auth("old", "x"))))
	if err != nil {
		t.Fatal(err)
	}
	signature := ed25519.Sign(keyOf(1), text)
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		m := read(t, request(auth("old", encoding.EncodeToString(signature))))
		if verified, err := (sign.Rules{Keys: keys}).Check(m, now); !verified || err != nil {
			t.Errorf("%s: verified %t, %v", m.Clutch.Auth.Value, verified, err)
		}
	}
}

func TestRulesSayWhichMessagesMustBeSigned(t *testing.T) {
	good, bad, none := signed(t, "old", 1, ""), request(auth("old", strings.Repeat("A", 86))), request("")
	require := func(r sign.Rule) []sign.Rule { r.Require = true; return []sign.Rule{r} }
	typed := func(word string) []sign.Rule { return require(sign.Rule{Sender: "ui", Types: []string{word}}) }
	for name, c := range map[string]struct {
		rules                      []sign.Rule
		keys                       map[string][]sign.Key
		goodIs, badIs, noneIs, cap string
	}{
		"no rule, no key":                 {nil, nil, "ignored", "ignored", "ignored", "ignored"},
		"keys alone":                      {nil, keys, "verified", "refused", "ignored", "ignored"},
		"verify the sender":               {[]sign.Rule{{Sender: "ui"}}, keys, "verified", "refused", "ignored", "ignored"},
		"require the sender":              {require(sign.Rule{Sender: "ui"}), keys, "verified", "refused", "refused", "refused"},
		"require another sender":          {require(sign.Rule{Sender: "web"}), keys, "verified", "refused", "ignored", "ignored"},
		"require the type":                {typed("task.request"), keys, "verified", "refused", "refused", "refused"},
		"require another type":            {typed("task.cancel"), keys, "verified", "refused", "ignored", "refused"},
		"require the domain":              {require(sign.Rule{Domain: "finance"}), keys, "verified", "refused", "refused", "ignored"},
		"verify the domain":               {[]sign.Rule{{Domain: "finance"}}, keys, "verified", "refused", "ignored", "ignored"},
		"require the domain, of no keys":  {require(sign.Rule{Domain: "finance"}), nil, "refused", "refused", "refused", "ignored"},
		"verify the domain, of no keys":   {[]sign.Rule{{Domain: "finance"}}, nil, "refused", "refused", "ignored", "ignored"},
		"require another domain, no keys": {require(sign.Rule{Domain: "legal"}), nil, "ignored", "ignored", "ignored", "ignored"},
		"the stricter of two rules": {
			append(require(sign.Rule{Domain: "finance"}), sign.Rule{Sender: "ui"}), keys, "verified", "refused", "refused", "ignored",
		},
	} {
		rules := sign.Rules{Keys: c.keys, Rules: c.rules}
		for _, one := range []struct {
			what string
			m    envelope.Message
			want string
		}{
			{"a good signature", read(t, good), c.goodIs}, {"a bad signature", read(t, bad), c.badIs},
			{"no signature", read(t, none), c.noneIs}, {"a message of CAP", envelope.Message{Dialect: envelope.CAP, From: "ui"}, c.cap},
		} {
			got := "ignored"
			switch verified, err := rules.Check(one.m, now); {
			case err != nil:
				got = "refused"
			case verified:
				got = "verified"
			}
			if got != one.want {
				t.Errorf("%s, %s: %s; want %s", name, one.what, got, one.want)
			}
		}
	}
}

func TestALineThatMailboxdSignsIsVerifiedWithItsKey(t *testing.T) {
	by := seal.PrivateKey(keyOf(5))
	for _, members := range []string{"", `,"security":{"policy":{"sandbox":true}}`, auth("other", "AA")} {
		text, err := sign.Line([]byte(request(members)), by)
		if err != nil {
			t.Fatal(err)
		}
		m := read(t, string(text))
		rules := sign.Rules{Keys: map[string][]sign.Key{"ui": {{ID: by.Key(), Public: by.Public()}}}}
		if verified, err := rules.Check(m, now); !verified || err != nil || strings.Contains(string(text), "\n") {
			t.Errorf("%s: verified %t, %v", text, verified, err)
		}
	}
	if text, err := sign.Line([]byte(`{"n":9007199254740993}`), by); err == nil {
		t.Errorf("%s is signed", text)
	}
}

func TestAPublicKeyIsPEMOrBase64(t *testing.T) {
	whole, err := seal.EncodePublic(publicOf(1))
	if err != nil {
		t.Fatal(err)
	}
	other, err := seal.EncodePublic(publicOf(2))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(whole)
	for _, text := range []string{
		string(whole), " \n" + string(whole), base64.StdEncoding.EncodeToString(block.Bytes), base64.StdEncoding.EncodeToString(publicOf(1)),
	} {
		if key, err := sign.ParsePublic(text); err != nil || !key.Equal(publicOf(1)) {
			t.Errorf("ParsePublic(%q) = %v, %v", text, key, err)
		}
	}
	private, err := seal.PrivateKey(keyOf(1)).Encode()
	if err != nil {
		t.Fatal(err)
	}
	short := base64.StdEncoding.EncodeToString(publicOf(1)[:31])
	for _, text := range []string{"", "x", short, string(private), string(whole) + string(other)} {
		if key, err := sign.ParsePublic(text); err == nil {
			t.Errorf("ParsePublic(%q) = %v; want an error", text, key)
		}
	}
}

// FuzzCheck has hostile values of security.auth: none of them is a signature of the key.
func FuzzCheck(f *testing.F) {
	for _, value := range []string{
		`null`, `"x"`, `[]`, `{}`, `{"scheme":"ed25519"}`, `{"scheme":"ed25519","kid":"old","sig":1}`,
		`{"scheme":"ed25519","kid":"old","sig":"%%%"}`, `{"scheme":"ed25519","kid":"o\u0000ld","sig":"c2ln"}`,
		`{"scheme":"none","kid":"old","sig":""}`, `{"scheme":"ed25519","kid":"old","sig":"","x":1e999}`,
		`{"scheme":"ed25519","kid":"old","kid":"new","sig":"AA"}`, `{"scheme":"ED25519","kid":"old","sig":"` + strings.Repeat("A", 86) + `"}`,
		`{"scheme":"ed25519","kid":"old","sig":"` + strings.Repeat("A", 43) + `\n` + strings.Repeat("A", 43) + `"}`,
	} {
		f.Add(value)
	}
	codec, _ := dialect.Of(envelope.Clutch)
	rules := sign.Rules{Keys: keys, Rules: []sign.Rule{{Sender: "ui", Require: true}}}
	f.Fuzz(func(t *testing.T, value string) {
		m, findings := codec.Decode([]byte(request(`,"security":{"auth":`+value+`}`)), envelope.Strict)
		verified, err := rules.Check(m, now)
		if verified || err == nil && m.From == "ui" {
			t.Errorf("security.auth %s: verified %t, %v, of %q, with %v", value, verified, err, m.From, findings)
		}
	})
}
