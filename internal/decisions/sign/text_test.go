package sign

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

func TestTheVectorsOfRFC8785Pass(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/rfc8785.txtar")
	if err != nil || len(archive.Files) < 14 {
		t.Fatalf("%d files, %v; want 14", len(archive.Files), err)
	}
	for i := 0; i+1 < len(archive.Files); i += 2 {
		in, out := archive.Files[i], archive.Files[i+1]
		if got, err := canonical(bytes.TrimSpace(in.Data)); err != nil || string(got)+"\n" != string(out.Data) {
			t.Errorf("%s becomes\n%s, %v; want\n%s", in.Name, got, err, out.Data)
		}
	}
}

func TestTheNumbersOfRFC8785Pass(t *testing.T) {
	text, err := os.ReadFile("testdata/numbers.txt")
	if err != nil {
		t.Fatal(err)
	}
	passed := 0
	for line := range strings.Lines(string(text)) {
		digits, want, found := strings.Cut(strings.TrimSpace(line), " ")
		bits, err := strconv.ParseUint(digits, 16, 64)
		if !found || err != nil {
			continue
		}
		literal := strconv.FormatFloat(math.Float64frombits(bits), 'e', 25, 64)
		if got, err := canonical([]byte(literal)); err != nil || string(got) != want {
			t.Errorf("%s becomes %s, %v; want %s", literal, got, err, want)
		}
		if err := checkNumbers([]byte("[" + want + "]")); err != nil {
			t.Errorf("the canonical number is refused: %v", err)
		}
		passed++
	}
	if passed != 24 {
		t.Errorf("%d numbers; want 24", passed)
	}
}

func TestANumberThatTheCanonicalFormChangesIsRefused(t *testing.T) {
	for literal, refused := range map[string]bool{
		"9007199254740992": false, "9007199254740993": true, "-9007199254740993": true, "9007199254740993.0": true,
		"1e999": true, "-1e999": true, "1e-999": true, "1e99999999999999999999": true, "1e1000001": true,
		"0": false, "-0": false, "0.0": false, "0e5": false, "-0.00E-9": false,
		"1.0": false, "1E2": false, "100": false, "0.1": false, "0.10": false, "1.5e+3": false, "12e-1": false,
		"0.000001": false, "1e21": false, "1e-7": false,
		"0.30000000000000000001": true, "333333333.33333329": true, "333333333.3333333": false, "123456789012345678": true,
	} {
		for _, line := range []string{`{"a":%}`, `{"a":[{"b":%}]}`, `{"a":[1,%,2]}`} {
			_, err := Text([]byte(strings.ReplaceAll(line, "%", literal)))
			if (err != nil) != refused {
				t.Errorf("%s in %s: %v; want refused %t", literal, line, err, refused)
			}
		}
	}
}

// What has no canonical form of the same content is not signed: a name that is there twice, and text that is no UTF-8.
func TestAnEnvelopeWithoutACanonicalFormHasNoText(t *testing.T) {
	for _, line := range []string{
		``, `[]`, `"x"`, `null`, `{`, `{}{}`, `{"a":1}x`, `{"a":1,"a":1}`, `{"a":{"b":1,"b":2}}`, `{"a":[{"b":1,"\u0062":2}]}`,
		"{\"a\":\"\xff\"}", "{\"\xff\":1}", `{"a":"\ud800"}`, `{"\udc00":1}`,
		`{"security":1}`, `{"security":[]}`, `{"security":{"auth":"x"}}`, `{"security":{"auth":[]}}`,
		`{"security":{"auth":{"sig":"a","sig":"a"}}}`,
	} {
		if got, err := Text([]byte(line)); err == nil {
			t.Errorf("Text(%q) = %s; want an error", line, got)
		}
	}
}

func TestTheTextCoversAllButTheSignature(t *testing.T) {
	const line = `{"z":"é", "security":{"policy":{"sandbox":true},"auth":{"sig":"AA","scheme":"ed25519","kid":"k","x":[1.0]}},"a":1e2}`
	const want = `{"a":100,"security":{"auth":{"kid":"k","scheme":"ed25519","x":[1]},"policy":{"sandbox":true}},"z":"é"}`
	if got, err := Text([]byte(line)); err != nil || string(got) != want {
		t.Errorf("Text = %s, %v; want %s", got, err, want)
	}
}

func FuzzText(f *testing.F) {
	for _, line := range []string{
		`{"a":1}`, `{"security":{"auth":{"sig":"x","kid":"\u0000"}}}`, `{"security":null,"a":[1e5,0.1,-0]}`, `{"a":"\ud83d\ude00","\u20ac":2}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		text, err := Text(line)
		if err != nil {
			return
		}
		again, err := Text(text)
		if err != nil || !bytes.Equal(again, text) {
			t.Errorf("the text of %s is %s, and its own is %s, %v", line, text, again, err)
		}
	})
}
