package dialect

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// isoTimes are the accepted forms of ISO 8601. Each has a zone (CLUTCH-03).
var isoTimes = []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04Z07:00"}

// time reads ts. A time without a zone is refused: it is never taken for the local one.
func (r *clutchReading) time(value jsontext.Value) time.Time {
	if value == nil {
		return time.Time{}
	}
	text := r.prose("ts", value)
	if value.Kind() != '"' {
		return time.Time{}
	}
	for _, layout := range isoTimes {
		if at, err := time.Parse(layout, strings.ToUpper(text)); err == nil {
			return at.UTC()
		}
	}
	r.refuse("ts", `must be a time of ISO 8601 with a zone such as "2026-02-01T13:20:11.123Z"`)
	return time.Time{}
}

// material reads the payload, the references and the attachments of a message (CLUTCH-12 to
// CLUTCH-22).
func (r *clutchReading) material() {
	c := r.part
	c.Domain = r.name("domain", r.member("domain"))
	c.PayloadType = r.name("payload_type", r.member("payload_type"))
	c.SchemaRef = r.name("schema_ref", r.member("schema_ref"))
	c.Requires = r.names("requires", r.member("requires"))
	c.Prefers = r.names("prefers", r.member("prefers"))
	c.IdempotencyKey = r.id("idempotency_key", r.member("idempotency_key"))
	c.Attempt = r.attempt(r.member("attempt"))
	r.security()
	for i, item := range r.list("attachments", r.member("attachments")) {
		if at := newFields(item, indexed("attachments", i)+".", r.fields.findings); at.members != nil {
			c.Attachments = append(c.Attachments, at.clutchAttachment())
			r.keep(at)
		}
	}
	if r.meta = r.within("meta"); r.meta.members != nil {
		c.Meta = r.member("meta")
		c.Workflow = r.meta.name("workflow", r.meta.member("workflow"))
		c.Step = r.meta.name("step", r.meta.member("step"))
		c.Intent = r.meta.prose("intent", r.meta.member("intent"))
		r.message.Cause = r.meta.id("causation_id", r.meta.member("causation_id"))
	}
	r.read["payload"] = true
	switch c.Payload = r.members["payload"]; {
	case c.Payload == nil:
		r.refuse("payload", "required")
	case c.Payload.Kind() == '{':
		r.payload, r.message.Data = newFields(c.Payload, "payload.", r.fields.findings), c.Payload
	}
}

// attempt reads the number of an attempt; 1 if there is none (CLUTCH-21).
func (r *clutchReading) attempt(value jsontext.Value) int {
	const most = 1e6
	if value == nil {
		return 1
	}
	number, err := strconv.ParseFloat(string(value), 64)
	if value.Kind() != '0' || err != nil || number < 1 || number > most || math.Trunc(number) != number {
		r.refuse("attempt", "must be a whole number, 1 or more")
		return 1
	}
	return int(number)
}

// security reads the signature and the limits of a message (CLUTCH-18). An unreadable limit
// refuses the message: it must not mean "no limit".
func (r *clutchReading) security() {
	c, security := r.part, r.within("security")
	if security.members == nil {
		return
	}
	if auth := security.within("auth"); auth.members != nil {
		c.Auth = envelope.Signature{
			Scheme: auth.name("scheme", auth.member("scheme")),
			KeyID:  auth.name("kid", auth.member("kid")),
			Value:  auth.name("sig", auth.member("sig")),
		}
		r.keep(auth)
	}
	if policy := security.within("policy"); policy.members != nil {
		c.SecurityPolicy.ToolAllowlist = policy.names("tool_allowlist", policy.member("tool_allowlist"))
		if policy.has("tool_allowlist") && c.SecurityPolicy.ToolAllowlist == nil {
			c.SecurityPolicy.ToolAllowlist = []string{}
		}
		if policy.has("sandbox") {
			sandbox := policy.flag("sandbox")
			c.SecurityPolicy.Sandbox = &sandbox
		}
		network := envelope.Network(policy.prose("network", policy.member("network")))
		if network != "" && !slices.Contains(envelope.Networks(), network) || policy.has("network") && network == "" {
			policy.refuse("network", `must be "none", "egress-restricted" or "egress-allowed"`)
		}
		c.SecurityPolicy.Network = network
		r.keep(policy)
	}
	r.keep(security)
}

// clutchAttachment reads an attachment (CLUTCH-19).
func (f fields) clutchAttachment() envelope.ClutchAttachment {
	a := envelope.ClutchAttachment{
		Kind: f.name("kind", f.required("kind")), MIMEType: f.name("mime_type", f.member("mime_type")),
		Ref: f.id("ref", f.member("ref")), URL: f.name("url", f.member("url")), Content: f.members["content"],
	}
	f.read["content"] = true
	switch a.Kind {
	case "artifact_ref":
		f.required("ref")
	case "url":
		f.required("url")
	case "inline":
		f.present("content")
	case "":
	default:
		f.refuse("kind", `must be "artifact_ref", "inline" or "url"`)
	}
	return a
}

// typed returns the type of a message; for a legacy type that of v0, and "" for an unknown one.
func (r *clutchReading) typed() string {
	value := r.required("type")
	if value == nil {
		return ""
	}
	word := r.prose("type", value)
	if today := legacyTypes[word]; today != "" {
		r.note("", "type", "is of before Clutch v0, read as "+strconv.Quote(today))
		return today
	}
	if value.Kind() == '"' && clutchActs[word] == "" {
		r.refuse("type", "must be one of "+strings.Join(ClutchTypes(), ", "))
		return ""
	}
	return word
}
