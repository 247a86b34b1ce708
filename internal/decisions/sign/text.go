package sign

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/stores/seal"
)

// Text returns what the signature of an envelope signs: its canonical form (RFC 8785) without security.auth.sig. It
// refuses an envelope that has no such form of the same content: a number that a 64-bit float changes, a name that is
// there twice, and text that is no UTF-8.
func Text(line []byte) ([]byte, error) {
	return withAuth(line, func(auth members) { delete(auth, "sig") })
}

// Line returns an envelope with the signature of a signer, in canonical form.
func Line(line []byte, by seal.Signer) ([]byte, error) {
	unsigned, err := withAuth(line, func(auth members) {
		auth["scheme"], auth["kid"] = quote(Scheme), quote(by.Key())
		delete(auth, "sig")
	})
	if err != nil {
		return nil, err
	}
	signature, err := by.Sign(unsigned)
	if err != nil {
		return nil, err
	}
	return withAuth(unsigned, func(auth members) { auth["sig"] = quote(base64.RawURLEncoding.EncodeToString(signature)) })
}

// members are an object. Decoding one refuses a name that is there twice, and text that is no UTF-8.
type members = map[string]jsontext.Value

func quote(text string) jsontext.Value { return jsontext.Value(strconv.Quote(text)) } // of ASCII alone

// withAuth changes security.auth of an envelope, and returns the canonical form.
func withAuth(line []byte, change func(auth members)) ([]byte, error) {
	if err := checkNumbers(line); err != nil {
		return nil, err
	}
	all, security, auth := members{}, members{}, members{}
	if err := json.Unmarshal(line, &all); err != nil || all == nil { // null is no object either
		return nil, cmp.Or(err, errors.New("is no object"))
	}
	if err := errors.Join(within(all, "security", &security), within(security, "auth", &auth)); err != nil {
		return nil, err
	}
	change(auth)
	text, err := json.Marshal(auth)
	for _, outer := range []struct {
		object members
		name   string
	}{{security, "auth"}, {all, "security"}} {
		if err != nil {
			return nil, err
		}
		outer.object[outer.name] = text
		text, err = json.Marshal(outer.object)
	}
	if err != nil {
		return nil, err
	}
	return canonical(text)
}

// canonical returns the form of RFC 8785.
func canonical(text []byte) ([]byte, error) {
	value := jsontext.Value(text).Clone()
	err := value.Canonicalize()
	return value, err
}

// within reads the object under a name; a missing one is empty.
func within(outer members, name string, inner *members) error {
	if value := outer[name]; value != nil && value.Kind() != 'n' {
		return json.Unmarshal(value, inner)
	}
	return nil
}

// checkNumbers refuses a number whose canonical form is another number. RFC 8785 has numbers of 64 bits, so that it
// makes 9007199254740992 of 9007199254740993, and a signature of one would be a signature of the other.
func checkNumbers(line []byte) error {
	decoder := jsontext.NewDecoder(bytes.NewReader(line))
	for {
		token, err := decoder.ReadToken()
		if err != nil {
			break // at its end, or where decoding finds the mistake
		}
		if token.Kind() != '0' {
			continue
		}
		literal := token.String()
		form, err := canonical([]byte(literal))
		if err != nil {
			return err
		}
		if !sameNumber(literal, string(form)) {
			return fmt.Errorf("the number %.40s would become %s: write it as a string", literal, form)
		}
	}
	return nil
}

// sameNumber reports whether two literals of JSON are the same number.
func sameNumber(a, b string) bool {
	digitsA, exponentA, okA := decimal(a)
	digitsB, exponentB, okB := decimal(b)
	return okA && okB && digitsA == digitsB && exponentA == exponentB
}

// decimal returns a number as digits, without zeros at either end, times a power of ten. Zero has no digits and no sign.
func decimal(literal string) (digits string, exponent int, ok bool) {
	rest, negative := strings.CutPrefix(literal, "-")
	mantissa, power, scaled := strings.Cut(strings.ToLower(rest), "e")
	if scaled {
		n, err := strconv.Atoi(power)
		if err != nil || n > 1e6 || n < -1e6 { // a float has powers of three digits
			return "", 0, false
		}
		exponent = n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(short)
	if short == "" {
		return "", 0, true
	}
	if negative {
		short = "-" + short
	}
	return short, exponent, true
}
