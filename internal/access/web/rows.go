package web

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/maphash"
	"net/http"
	"regexp"
	"strings"
)

// rowBegin is the first tag of a row that an update leaves out while it has not changed. Templates
// mark such a row with data-v, and an id. Texts of agents are escaped, so none looks like it.
var rowBegin = regexp.MustCompile(`<(tr|li)( data-row)? data-v id="([a-z]+[0-9]+)"`)

// ages are the words that the browser keeps up to date by itself.
var ages = regexp.MustCompile(` data-age>[^<]*<`)

// versions makes the version of each row of its text. Another process makes others.
var versions = maphash.MakeSeed()

// rowsIn returns the versions of the rows that the browser shows, by their ids. The browser names
// them in the header Rows.
func rowsIn(r *http.Request) map[string]string {
	have := map[string]string{}
	for _, one := range strings.Fields(r.Header.Get("Rows")) {
		id, version, _ := strings.Cut(one, "=")
		have[id] = version
	}
	return have
}

// changedRows writes into each row of a page its version. Of a row that the browser has in the
// same version, only the id is left.
func changedRows(text []byte, have map[string]string) []byte {
	var out bytes.Buffer
	out.Grow(len(text))
	for {
		at := rowBegin.FindSubmatchIndex(text)
		if at == nil {
			break
		}
		tag, id := string(text[at[2]:at[3]]), string(text[at[6]:at[7]])
		end := bytes.Index(text[at[0]:], []byte("</"+tag+">"))
		if end < 0 {
			break
		}
		end += at[0] + len("</"+tag+">")
		row := text[at[0]:end]
		version := versionOf(row)
		out.Write(text[:at[0]])
		if have[id] == version {
			out.WriteString("<" + tag + ` id="` + id + `" data-same></` + tag + ">")
		} else {
			out.Write(bytes.Replace(row, []byte(" data-v "), []byte(` data-v="`+version+`" `), 1))
		}
		text = text[end:]
	}
	out.Write(text)
	return out.Bytes()
}

// versionOf returns the version of a row, whatever its ages are.
func versionOf(row []byte) string {
	sum := maphash.Bytes(versions, ages.ReplaceAll(row, nil))
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, sum)[:6])
}
