package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// performatives are those of CLowl v0.2's table.
var performatives = []string{"REQ", "INF", "ACK", "ERR", "DLGT", "DONE", "CNCL", "QRY", "PROG", "CAPS"}

// retryable are the error codes of CLowl v0.2's table, and whether each is.
var retryable = map[string]bool{
	"E001": true, "E002": false, "E003": true, "E004": true, "E005": false, "E006": true, "E007": true, "E008": true,
	"E009": true, "E010": false, "E011": true, "E012": false, "E013": false, "E014": false, "E015": false, "E016": false,
}

// reserved are the ranges of codes that other pages of CLowl set aside.
var reserved = regexp.MustCompile(`^E[129][0-9][0-9]$`)

var sum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// CLowl says what is wrong with a line as a message of CLowl v0.2; nil when
// nothing is. It holds it to the strictest of what its references say.
func CLowl(line []byte) error {
	o, err := parse(line)
	if err != nil {
		return err
	}
	if err := o.only("", "clowl", "mid", "ts", "tid", "pid", "p", "from", "to", "cid", "body", "ctx", "auth", "det"); err != nil {
		return err
	}
	if version, err := o.text("clowl", true); err != nil || version != "0.2" {
		return errors.New(`clowl must be "0.2"`)
	}
	for name, required := range map[string]bool{"mid": true, "from": true, "cid": true, "tid": false, "pid": false, "auth": false} {
		s, err := o.text(name, required)
		if err == nil && units(s) > 128 {
			err = fmt.Errorf("%s is longer than 128", name)
		}
		if err != nil {
			return err
		}
	}
	for _, check := range []func(object) error{clowlTime, clowlTo, clowlContext, clowlBody} {
		if err := check(o); err != nil {
			return err
		}
	}
	if det, there := o["det"]; there && boolean(det) != nil {
		return errors.New("det must be a boolean")
	}
	return nil
}

func units(s string) int { return len(utf16.Encode([]rune(s))) }

func clowlTime(o object) error {
	ts, there := o["ts"]
	if !there || whole(ts) != nil {
		return errors.New("ts must be an integer")
	}
	if seconds, err := strconv.ParseInt(string(ts), 10, 64); err != nil || seconds < 0 || seconds > 1e11 {
		return errors.New("ts must be in seconds since 1970")
	}
	return nil
}

func clowlTo(o object) error {
	raw, there := o["to"]
	if !there {
		return errors.New("to is missing")
	}
	if s, err := str(raw); err == nil {
		if s == "" || units(s) > 128 {
			return errors.New("to is empty or too long")
		}
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return errors.New("to must be a string or a list that is not empty")
	}
	for _, item := range list {
		if s, err := str(item); err != nil || s == "" || s == "*" || units(s) > 128 {
			return errors.New("to must name its recipients one by one")
		}
	}
	return nil
}

func clowlContext(o object) error {
	raw, there := o["ctx"]
	if !there {
		return nil
	}
	ctx, err := members("ctx", raw)
	if err != nil {
		return err
	}
	if err := ctx.only("ctx.", "ref", "inline", "hash"); err != nil {
		return err
	}
	for name, raw := range ctx {
		s, err := str(raw)
		switch {
		case err != nil:
			return fmt.Errorf("ctx.%s must be a string", name)
		case name == "inline" && utf8.RuneCountInString(s) > 2000:
			return errors.New("ctx.inline is longer than 2000")
		case name == "hash" && !sum.MatchString(s):
			return errors.New("ctx.hash must be 64 lower-case hex digits")
		}
	}
	return nil
}

func clowlBody(o object) error {
	p, err := o.text("p", true)
	if err != nil || !slices.Contains(performatives, p) {
		return errors.New("p is no performative")
	}
	body, err := members("body", o["body"])
	if err != nil {
		return err
	}
	if err := body.only("body.", "t", "d"); err != nil {
		return err
	}
	t, err := body.text("t", true)
	if err != nil {
		return fmt.Errorf("body.%w", err)
	}
	d, err := members("body.d", body["d"])
	if err != nil {
		return err
	}
	switch p {
	case "ERR":
		return clowlError(t, d)
	case "DLGT":
		mode, _ := d.text("delegation_mode", true)
		if !slices.Contains([]string{"transfer", "fork", "assist"}, mode) {
			return errors.New("body.d.delegation_mode must be transfer, fork or assist")
		}
	case "CAPS":
		return clowlCaps(t, d)
	}
	return nil
}

func clowlError(t string, d object) error {
	code, err := d.text("code", true)
	if err != nil {
		return fmt.Errorf("body.d.%w", err)
	}
	retry, listed := retryable[code]
	switch msg, err := str(d["msg"]); {
	case t != "error":
		return errors.New(`body.t of an error must be "error"`)
	case !listed && !reserved.MatchString(code):
		return fmt.Errorf("body.d.code %q is in no table", code)
	case err != nil:
		return fmt.Errorf("body.d.msg %w, not %q", err, msg)
	case d["retry"] == nil || boolean(d["retry"]) != nil:
		return errors.New("body.d.retry must be a boolean")
	case listed && !retry && string(d["retry"]) == "true":
		return fmt.Errorf("body.d.retry of %s must be false", code)
	}
	return nil
}

func clowlCaps(t string, d object) error {
	var supports []string
	switch version, _ := d.text("clowl", true); {
	case t != "capabilities":
		return errors.New(`body.t of CAPS must be "capabilities"`)
	case version != "0.2":
		return errors.New(`body.d.clowl must be "0.2"`)
	case d["supports"] == nil || json.Unmarshal(d["supports"], &supports) != nil:
		return errors.New("body.d.supports must be a list of strings")
	}
	return nil
}
