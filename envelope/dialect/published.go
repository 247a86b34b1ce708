package dialect

import (
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// ReplaceFiles replaces the files of a run in the attachments that an answer keeps for requesters in
// its own dialect. replacement returns the URI that a reference becomes, "" for one that is left out,
// and false for one that stays. An attachment in CAP goes, since it is among the artifacts of the
// result.
func ReplaceFiles(r *envelope.Result, replacement func(ref string) (uri string, replaced bool)) {
	clutch := membersOf(membersOf(r.Extra)[keptClutch])
	if list := clutch["attachments"]; list != nil {
		clutch["attachments"] = eachAttachment(list, "ref", func(a map[string]jsontext.Value, ref string) bool {
			uri, replaced := replacement(ref)
			if replaced {
				a["ref"] = quoted(uri)
			}
			return !replaced || uri != ""
		})
		r.Extra = replaceMember(r.Extra, keptClutch, object(clutch))
	}
	if list := membersOf(r.Output.Extra)["attachments"]; list.Kind() == '[' {
		rest := eachAttachment(list, "path", func(_ map[string]jsontext.Value, path string) bool {
			_, replaced := replacement(path)
			return !replaced
		})
		r.Output.Extra = replaceMember(r.Output.Extra, "attachments", rest)
	}
}

// eachAttachment returns the attachments for which keep reports true; nil for none. It calls keep for
// those with a member, which it may change.
func eachAttachment(list jsontext.Value, name string, keep func(a map[string]jsontext.Value, value string) bool) jsontext.Value {
	var all, kept []jsontext.Value
	unmarshal(list, &all)
	for _, value := range all {
		a := membersOf(value)
		if text, ok := textOf(a[name]); ok {
			if !keep(a, text) {
				continue
			}
			value = object(a)
		}
		kept = append(kept, value)
	}
	if len(kept) == 0 {
		return nil
	}
	return array(kept)
}

// replaceMember replaces a member of an object, or removes it for nil.
func replaceMember(members jsontext.Value, name string, value jsontext.Value) jsontext.Value {
	all := membersOf(members)
	if all[name] = value; value == nil {
		delete(all, name)
	}
	if len(all) == 0 {
		return nil
	}
	return object(all)
}
