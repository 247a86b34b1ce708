package dialect

import (
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// attachments reads the attachments of a message (CAP-16). The content of a python_object stays
// JSON.
func (f fields) attachments(name string) []envelope.Attachment {
	var list []envelope.Attachment
	for i, item := range f.list(name, f.member(name)) {
		at := newFields(item, indexed(name, i)+".", f.findings)
		if at.members != nil {
			list = append(list, at.attachment(item))
		}
	}
	return list
}

func (f fields) attachment(raw jsontext.Value) envelope.Attachment {
	a := envelope.Attachment{Type: f.name("type", f.required("type")), Raw: raw}
	switch a.Type {
	case "tool_call_result":
		a.Server = f.name("server_id", f.required("server_id"))
		a.Tool = f.name("tool", f.required("tool"))
		f.present("result")
	case "file":
		f.file(&a)
	case "python_object":
		f.present("object")
	case "text_snippet":
		a.Text = f.prose("text", f.required("text"))
	case "":
	default:
		f.refuse("type", `must be "tool_call_result", "file", "python_object" or "text_snippet"`)
	}
	return a
}

// present requires a member, of any value, null included.
func (f fields) present(name string) {
	if f.members[name] == nil {
		f.refuse(name, "required")
	}
}

// file reads the path or the URL of a file. The mailbox checks whether a path leads out of the
// allowed directories; a path that shows it by itself is refused here.
func (f fields) file(a *envelope.Attachment) {
	a.Path, a.URL = f.name("path", f.member("path")), f.name("url", f.member("url"))
	switch {
	case f.has("path") && f.has("url"):
		f.refuse("", "must have a path or a url, not both")
	case !f.has("path") && !f.has("url"):
		f.refuse("path", "required")
	case a.Path != "" && !filepath.IsAbs(a.Path) && !filepath.IsLocal(a.Path):
		f.note(envelope.SecurityViolation, "path", "leads outside the directories that tasks may name files in")
	}
}

// RefField returns the path of the member with reference i of a request.
func RefField(t envelope.Task, i int) string {
	if envelope.MarkedAs(t.Raw) == envelope.CAP {
		m, _ := capCodec{}.Decode(t.Raw, envelope.Legacy)
		for at, a := range m.Attachments {
			if a.Path == "" && a.URL == "" {
				continue
			}
			if i == 0 {
				return AttachmentField(a, at)
			}
			i--
		}
	}
	return indexed("input.refs", i) + ".uri"
}

// AttachmentField returns the path of the member that names the file of attachment i of a CAP
// message.
func AttachmentField(a envelope.Attachment, i int) string {
	if a.Path == "" {
		return indexed("attachments", i) + ".url"
	}
	return indexed("attachments", i) + ".path"
}

// refsOf returns the files of a list of attachments as references.
func refsOf(list []envelope.Attachment) []envelope.Ref {
	var refs []envelope.Ref
	for _, a := range list {
		switch {
		case a.Path != "":
			refs = append(refs, envelope.Ref{Kind: "file", URI: "file://" + a.Path})
		case a.URL != "":
			refs = append(refs, envelope.Ref{Kind: "file", URI: a.URL})
		}
	}
	return refs
}

// fileAttachment returns a reference as an attachment.
func fileAttachment(uri string) envelope.Attachment {
	if path, ok := strings.CutPrefix(uri, "file://"); ok {
		return envelope.Attachment{Type: "file", Path: path}
	}
	return envelope.Attachment{Type: "file", URL: uri}
}

// valueAttachment returns any value as an attachment.
func valueAttachment(value jsontext.Value) envelope.Attachment {
	raw := object(map[string]jsontext.Value{"type": quoted("python_object"), "object": value})
	return envelope.Attachment{Type: "python_object", Raw: raw}
}
