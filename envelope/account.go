package envelope

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// The members of an answer about the answer itself are read leniently: a miscount of the agent
// doesn't make its work worthless. A value that makes no sense asks for a person.

// confidence reads a number from 0 to 1 (AINL-64).
func (a *answer) confidence(at int) {
	if at == none {
		return
	}
	f, err := strconv.ParseFloat(string(a.value(at)), 64)
	if a.kind(at) != '0' || err != nil || f < 0 || f > 1 {
		a.question(at, "must be a number from 0 to 1: left out")
		return
	}
	a.result.Confidence = &f
}

// artifacts reads artifact_refs (AINL-67).
func (a *answer) artifacts(at int) {
	switch {
	case at == none:
		return
	case a.kind(at) != '[':
		a.question(at, "must be a list: left out")
		return
	}
	for _, item := range a.items(at) {
		ref := Ref{Kind: a.word(item, "kind"), URI: a.word(item, "uri")}
		if !visible(ref.Kind) || !visible(ref.URI) {
			a.question(item, "must have a kind and a uri: left out")
			continue
		}
		a.result.Artifacts = append(a.result.Artifacts, ref)
	}
}

// cost reads cost_used. If one of the two numbers is missing, the cost is unknown: a missing
// number is not 0 (AINL-68).
func (a *answer) cost(at int) {
	if at == none {
		return
	}
	tokens, ok1 := a.whole(a.within(at, "tokens"))
	cents, ok2 := a.whole(a.within(at, "usd_cents"))
	if !ok1 || !ok2 {
		a.question(at, "must have whole numbers for tokens and usd_cents: the cost is unknown")
		return
	}
	a.result.Cost = &Cost{Tokens: tokens, USDCents: cents}
}

// time reads time_used (AINL-69).
func (a *answer) time(at int) {
	if at == none {
		return
	}
	used := &a.result.Time
	used.Started = a.stamp(a.within(at, "started_at"))
	used.Finished = a.stamp(a.within(at, "finished_at"))
	if wall := a.within(at, "wall_ms"); wall != none {
		ms, ok := a.whole(wall)
		if !ok || ms > math.MaxInt64/int64(time.Millisecond) {
			a.warn(wall, "must be a whole number: left out")
			return
		}
		used.Wall = time.Duration(ms) * time.Millisecond
	}
}

func (a *answer) stamp(at int) time.Time {
	if at == none {
		return time.Time{}
	}
	t, err := time.Time{}, errors.New("not a string")
	if a.kind(at) == '"' {
		t, err = parseInstant(a.prose(at))
	}
	if err != nil {
		a.warn(at, "must be a time with a zone: left out")
	}
	return t
}

// review reads needs_review. An unreadable value counts as a request for review (AINL-70); a
// boolean is the form of the second upstream contract (F6).
func (a *answer) review(at int) {
	if at == none {
		return
	}
	switch a.kind(at) {
	case 't', 'f':
		a.warn(at, "should be an object")
		a.result.Review.Required = a.kind(at) == 't'
		return
	case '{':
		a.result.Review.Reason = a.word(at, "reason")
		required := a.find(at, "required")
		if required != none && (a.kind(required) == 't' || a.kind(required) == 'f') {
			a.result.Review.Required = a.kind(required) == 't'
			return
		}
	}
	a.question(at, "must say whether review is required")
}

// error reads what went wrong (AINL-71).
func (a *answer) error(at int) {
	switch {
	case at == none:
		return
	case a.kind(at) == '"':
		a.result.Error.Message = a.prose(at)
	case a.kind(at) == '{':
		a.result.Error = Error{Kind: Kind(a.word(at, "kind")), Message: a.word(at, "message"), Code: a.word(at, "code")}
		retry := a.kind(a.member(at, "retry"))
		a.result.Error.Final, a.result.Error.Again = retry == 'f', retry == 't'
	default:
		a.question(at, "must have a kind and a message")
		return
	}
	if a.result.Status == OK && a.result.Error != (Error{}) {
		a.question(at, "is set although the status is ok")
	}
}

// provenance reads provenance_ref (AINL-72); a string is the form of the second upstream
// contract (F6).
func (a *answer) provenance(at int) {
	switch {
	case at == none:
	case a.kind(at) == '"':
		a.warn(at, "should be an object: read as its recording_uri")
		a.result.Provenance.RecordingURI = a.prose(at)
	case a.kind(at) == '{':
		a.result.Provenance = Provenance{
			GraphChecksum:  a.word(at, "ainl_graph_checksum"),
			ProgramID:      a.word(at, "ainl_program_id"),
			RuntimeVersion: a.word(at, "runtime_version"),
			RecordingURI:   a.word(at, "recording_uri"),
		}
	default:
		a.warn(at, "should be an object: left out")
	}
}

// within returns the named member of an object; none if there is no such member, or the node is
// no object.
func (c *check) within(at int, name string) int {
	if c.kind(at) != '{' {
		return none
	}
	return c.member(at, name)
}

// word returns the text of a member of an object; "" if there is no such member, or it is no
// string.
func (c *check) word(at int, name string) string {
	member := c.within(at, name)
	if member == none || c.kind(member) != '"' {
		return ""
	}
	text, _ := c.text(member)
	return text
}
