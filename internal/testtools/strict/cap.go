package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// capMembers are the members that CAP's types of messages have of their own, that
// with their words first.
var capMembers = map[string][]string{
	"message":           {"content", "attachments"},
	"delegation_notice": {"context_summary", "attachments"},
	"error_response":    {"error_message", "error_code"},
	"oversight_inquiry": {"inquiry", "attachments"},
}

// CAP says what is wrong with a line as a message of CAP; nil when nothing is.
// The time, which every message carries, must be there.
func CAP(line []byte) error {
	o, err := parse(line)
	if err != nil {
		return err
	}
	word, err := o.text("type", true)
	if err != nil {
		return err
	}
	own := capMembers[word]
	if own == nil {
		return fmt.Errorf("type %q is none of CAP's", word)
	}
	known := append([]string{"type", "task_id", "sender_id", "recipient_id", "timestamp"}, own...)
	if word == "message" {
		known = append(known, "expects_reply") // ours
	}
	if err := o.only("", known...); err != nil {
		return err
	}
	for _, name := range []string{"task_id", "sender_id", "recipient_id"} {
		if _, err := o.text(name, true); err != nil {
			return err
		}
	}
	if stamp, err := str(o["timestamp"]); err != nil {
		return errors.New("timestamp must be a string")
	} else if _, err := time.Parse(time.RFC3339, stamp); err != nil || stamp[len(stamp)-1] != 'Z' {
		return errors.New("timestamp must be RFC 3339 in UTC")
	}
	if _, err := str(o[own[0]]); err != nil {
		return fmt.Errorf("%s %w", own[0], err)
	}
	if word == "error_response" {
		if err := whole(o["error_code"]); err != nil {
			return fmt.Errorf("error_code %w", err)
		}
	}
	return capAttachments(o)
}

func capAttachments(o object) error {
	raw, there := o["attachments"]
	if !there {
		if kind, _ := str(o["type"]); kind == "delegation_notice" {
			return errors.New("attachments is missing")
		}
		return nil
	}
	var list []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		return errors.New("attachments must be a list")
	}
	for i, raw := range list {
		a, err := members("attachment", raw)
		if err == nil {
			err = capAttachment(a)
		}
		if err != nil {
			return fmt.Errorf("attachments[%d]: %w", i, err)
		}
	}
	return nil
}

func capAttachment(a object) error {
	word, err := a.text("type", true)
	if err != nil {
		return err
	}
	wants := func(names ...string) error {
		for _, name := range names {
			if a[name] == nil {
				return fmt.Errorf("%s is missing", name)
			}
		}
		return nil
	}
	switch word {
	case "tool_call_result":
		return wants("server_id", "tool", "result")
	case "file":
		_, path := a["path"]
		if _, url := a["url"]; path == url {
			return errors.New("must have a path or a url")
		}
		return nil
	case "python_object":
		return wants("object")
	case "text_snippet":
		if _, err := str(a["text"]); err != nil {
			return fmt.Errorf("text %w", err)
		}
		return nil
	}
	return fmt.Errorf("type %q is none of CAP's", word)
}
