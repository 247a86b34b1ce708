package seal_test

import (
	"crypto/ed25519"
	"encoding/json"
	"strings"
	"testing"

	"mailboxd/internal/stores/seal"
)

func key(n byte) seal.PrivateKey {
	return seal.PrivateKey(ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune('a'+n)), 32))))
}

func keys(of ...seal.PrivateKey) seal.Keys {
	all := seal.Keys{}
	for _, k := range of {
		all[k.Key()] = k.Public()
	}
	return all
}

// The hash was computed by Python: sha256(b"".join(len(f).to_bytes(8, "big") + f for f in fields)).
func TestTheHashOfAnEventIsThatOfAnotherImplementation(t *testing.T) {
	e := seal.Event{Seq: 7, Time: 1700000000000000, Kind: "task.accepted", Task: "a", Revision: 1, Data: []byte(`{"n":1}`)}
	if got := e.Hash().String(); got != "d15143e162a50306c244e83ba18e1c712d53df90e1e196dae7c00062bcac57ec" {
		t.Errorf("hash = %s", got)
	}
	r := seal.NewRange(seal.Hash{})
	r.Add(e.Hash())
	if got := r.Sum().String(); got != "f2662bb7e53b7f84afcfed6c16fadb41918bada3e3f7eed1400d3240ff051985" {
		t.Errorf("hash of the range = %s", got)
	}
}

func TestEachColumnOfAnEventChangesItsHash(t *testing.T) {
	e := seal.Event{Seq: 7, Time: 1, Kind: "ab", Task: "c", Revision: 1, Data: []byte("d")}
	seen := map[seal.Hash]bool{e.Hash(): true}
	for _, change := range []func(*seal.Event){
		func(e *seal.Event) { e.Seq++ }, func(e *seal.Event) { e.Time++ }, func(e *seal.Event) { e.Revision++ },
		func(e *seal.Event) { e.Kind, e.Task = "a", "bc" }, func(e *seal.Event) { e.Task = "" },
		func(e *seal.Event) { e.Data = []byte("e") }, func(e *seal.Event) { e.Data = nil },
		func(e *seal.Event) { e.Data = []byte(strings.Repeat("d", 600)) },
	} {
		other := e
		change(&other)
		if seen[other.Hash()] {
			t.Errorf("the hash of %+v is that of another event", other)
		}
		seen[other.Hash()] = true
	}
}

func TestASealVerifiesOnlyAsItWasSigned(t *testing.T) {
	signed, err := seal.Seal{First: 1, Last: 2, Time: 3}.Signed(key(0))
	if err != nil || signed.Verify(keys(key(0))) != nil {
		t.Fatal(err, signed.Verify(keys(key(0))))
	}
	for _, change := range []func(*seal.Seal){
		func(s *seal.Seal) { s.First++ }, func(s *seal.Seal) { s.Last++ }, func(s *seal.Seal) { s.Time++ },
		func(s *seal.Seal) { s.Previous[0]++ }, func(s *seal.Seal) { s.Hash[31]++ }, func(s *seal.Seal) { s.Key = key(1).Key() },
		func(s *seal.Seal) { s.Signature = append([]byte{s.Signature[0] + 1}, s.Signature[1:]...) }, func(s *seal.Seal) { s.Signature = nil },
	} {
		other := signed
		change(&other)
		if other.Verify(keys(key(0), key(1))) == nil {
			t.Errorf("%+v verifies", other)
		}
	}
	text, _ := json.Marshal(signed)
	var read seal.Seal
	if err := json.Unmarshal(text, &read); err != nil || read.Verify(keys(key(0))) != nil {
		t.Errorf("%s doesn't verify: %v", text, err)
	}
}

func TestKeysAreReadAsTheyWereWritten(t *testing.T) {
	text, err := key(0).Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := seal.ParsePrivateKey(text)
	if err != nil || read.Key() != key(0).Key() {
		t.Errorf("key = %v, %v", read, err)
	}
	public, _ := seal.EncodePublic(key(0).Public())
	other, _ := seal.EncodePublic(key(1).Public())
	all, err := seal.ParseKeys(append(public, other...))
	if err != nil || len(all) != 2 || !all[key(1).Key()].Equal(key(1).Public()) {
		t.Errorf("keys = %v, %v", all, err)
	}
	for _, wrong := range []string{"", "x", string(public), "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if _, err := seal.ParsePrivateKey([]byte(wrong)); err == nil {
			t.Errorf("%q is a private key", wrong)
		}
	}
	for _, wrong := range []string{"", "x", string(text)} {
		if _, err := seal.ParseKeys([]byte(wrong)); err == nil {
			t.Errorf("%q has public keys", wrong)
		}
	}
}

func successor(t *testing.T, next, old, by seal.PrivateKey) seal.Successor {
	t.Helper()
	s := seal.Successor{Key: next.Key(), Public: next.Public(), Time: 1, Replaces: old.Key()}
	var err error
	if s.Signature, err = by.Sign(s.Text()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAKeyIsTrustedIfTheOneBeforeSignedIt(t *testing.T) {
	second, third, forged := successor(t, key(1), key(0), key(0)), successor(t, key(2), key(1), key(1)), successor(t, key(3), key(1), key(3))
	all := keys(key(0)).Follow([]seal.Successor{third, forged, second})
	if len(all) != 3 || all[key(2).Key()] == nil || all[key(3).Key()] != nil {
		t.Errorf("keys = %v", all)
	}
	if all := keys(key(1)).Follow([]seal.Successor{second, third}); len(all) != 2 {
		t.Errorf("keys = %v; want no key from before", all)
	}
}

func TestSeqsAreASet(t *testing.T) {
	set := seal.SeqsOf([]int64{1, 2, 3, 7, 9, 10})
	if set.String() != "1-3,7,9-10" {
		t.Errorf("set = %s", set)
	}
	var read seal.Seqs
	if err := read.UnmarshalText([]byte("1-3,7,9-10")); err != nil || read.String() != set.String() {
		t.Errorf("read = %s, %v", read, err)
	}
	if all := seal.Union(set, seal.SeqsOf([]int64{4, 8, 12})); all.String() != "1-4,7-10,12" || !set.Covers(seal.Span{First: 9, Last: 10}) {
		t.Errorf("union = %s", all)
	}
	for span, want := range map[seal.Span]bool{{1, 3}: true, {2, 2}: true, {3, 4}: false, {4, 6}: false, {7, 9}: false, {0, 1}: false, {11, 11}: false} {
		if set.Covers(span) != want {
			t.Errorf("covers %s = %v", span, !want)
		}
	}
	for _, wrong := range []string{"", "a", "1-", "2-1", "3,1", "1,2", "1-3,2-4", "01", "1-1", "1,,3", " 1"} {
		if err := read.UnmarshalText([]byte(wrong)); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}
