package bundle

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// tarOf writes a tar as any program may.
func tarOf(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		h := *h
		if h.ModTime.IsZero() && h.Typeflag != tar.TypeXGlobalHeader {
			h.ModTime = noon
		}
		if h.Mode == 0 && h.Typeflag != tar.TypeXGlobalHeader {
			h.Mode = 0o644
		}
		if h.Format == tar.FormatUnknown {
			h.Format = tar.FormatUSTAR
		}
		try(t, w.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg && h.Size < 1<<20 {
			_, err := w.Write(make([]byte, h.Size))
			try(t, err)
		}
	}
	if err := w.Close(); err != nil { // a size that is a lie
		b.Write(make([]byte, 2*block))
	}
	return b.Bytes()
}

func file(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size}
}

func link(kind byte, name, to string) *tar.Header {
	return &tar.Header{Typeflag: kind, Name: name, Linkname: to}
}

// spliced returns a bundle with other bytes in the place of those at an offset; a negative one counts from the end.
func spliced(whole []byte, at int, with []byte) []byte {
	if at < 0 {
		at += len(whole)
	}
	return slices.Concat(whole[:at], with, whole[min(len(whole), at+len(with)):])
}

// forged changes the first header of a bundle, and makes its sum right.
func forged(whole []byte, change func([]byte)) []byte {
	other := bytes.Clone(whole)
	change(other[:block])
	copy(other[148:156], "        ")
	sum := 0
	for _, b := range other[:block] {
		sum += int(b)
	}
	copy(other[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return other
}

// A refused file is no bundle, for a reason.
type refused struct {
	text []byte
	why  string
}

const (
	badHeader = "is not one that mailboxd writes"
	badName   = "no file of a bundle has the name"
	noHeader  = "no header of a plain file"
)

// hostile are files that are no bundles.
func hostile(t testing.TB) map[string]refused {
	t.Helper()
	whole, e := newMade(t).write(t), manifestName
	long := &tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("d/", 100) + e, Format: tar.FormatPAX}
	sparse := &tar.Header{Typeflag: tar.TypeGNUSparse, Name: e, Format: tar.FormatGNU}
	global := &tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}, Format: tar.FormatPAX}
	records := &tar.Header{Typeflag: tar.TypeReg, Name: e, PAXRecords: map[string]string{"MAILBOXD.x": "y"}, Format: tar.FormatPAX}
	owned := file(e, 3)
	owned.Uid, owned.Uname = 1000, "root"
	setID := file(e, 3)
	setID.Mode = 0o4755
	negative := file(e, 3)
	negative.ModTime = time.Unix(-1, 0)
	negative.Format = tar.FormatGNU
	huge := file(e, 8<<30)
	huge.Format = tar.FormatGNU
	several := func(n int) (all []*tar.Header) {
		for i := range n {
			all = append(all, file(base("requests", i)+".json", 0))
		}
		return all
	}
	return map[string]refused{
		"nothing":                      {nil, `EOF`},
		"text":                         {[]byte(strings.Repeat("this is no tar\n", 100)), noHeader},
		"an end alone":                 {make([]byte, 2*block), `it has no manifest.json`},
		"zeros":                        {make([]byte, 1<<20), `two empty blocks`},
		"a symbolic link":              {tarOf(t, link(tar.TypeSymlink, e, "/etc/passwd")), badHeader},
		"a hard link":                  {tarOf(t, link(tar.TypeLink, e, "/etc/passwd")), badHeader},
		"a directory":                  {tarOf(t, link(tar.TypeDir, "requests/", "")), badName},
		"a device":                     {tarOf(t, link(tar.TypeChar, e, "")), badHeader},
		"a pipe":                       {tarOf(t, link(tar.TypeFifo, e, "")), badHeader},
		"a parent directory":           {tarOf(t, file("../manifest.json", 3)), badName},
		"a parent directory inside":    {tarOf(t, file("requests/../../x.json", 3)), badName},
		"an absolute name":             {tarOf(t, file("/manifest.json", 3)), badName},
		"a name of no file":            {tarOf(t, file("run.sh", 3)), badName},
		"a name with a dot":            {tarOf(t, file("./manifest.json", 3)), badName},
		"a long name":                  {tarOf(t, long), badName},
		"a name twice":                 {tarOf(t, file(e, 3), file(e, 3)), `"manifest.json" comes after "manifest.json"`},
		"names out of order":           {tarOf(t, file("seals.jsonl", 3), file(e, 3)), `"manifest.json" comes after`},
		"too large a file":             {tarOf(t, file(e, maxEntry+1)), `more than 64 MiB`},
		"a file that isn't there":      {tarOf(t, file(e, maxEntry)), `unexpected EOF`},
		"a huge file":                  {tarOf(t, huge), `more than 64 MiB`},
		"a sparse file":                {tarOf(t, sparse), badHeader},
		"extended records":             {tarOf(t, records), noHeader},
		"a global header":              {tarOf(t, global), noHeader},
		"an owner":                     {tarOf(t, owned), badHeader},
		"a mode":                       {tarOf(t, setID), badHeader},
		"a time before 1970":           {tarOf(t, negative), badHeader},
		"many files":                   {tarOf(t, several(maxEntries+1)...), `more than 20000 files`},
		"no manifest":                  {tarOf(t, file("seals.jsonl", 3)), `it has no manifest.json`},
		"bytes after the end":          {append(bytes.Clone(whole), make([]byte, block)...), `two empty blocks`},
		"one end":                      {whole[:len(whole)-block], `two empty blocks`},
		"an end that isn't empty":      {spliced(whole, -1, []byte{1}), `two empty blocks`},
		"a cut":                        {whole[:len(whole)/2], `EOF`},
		"a size of base 256":           {forged(whole, func(h []byte) { h[124], h[125] = 0x80, 0xff }), noHeader},
		"bytes after a name":           {forged(whole, func(h []byte) { h[99] = 'x' }), badHeader},
		"bytes at the end of a header": {forged(whole, func(h []byte) { h[511] = 'x' }), badHeader},
		"a link's target in a file":    {forged(whole, func(h []byte) { copy(h[157:], "/etc/passwd") }), badHeader},
		"a prefix":                     {forged(whole, func(h []byte) { copy(h[345:], "/etc") }), badName},
	}
}

// A zeroFile has as many zeros as are read.
type zeroFile struct{}

func (zeroFile) ReadAt(p []byte, _ int64) (int, error) { clear(p); return len(p), nil }

func TestHostileFilesAreNoBundles(t *testing.T) {
	all := hostile(t)
	if len(all) < 30 {
		t.Fatalf("%d hostile files; want at least 30", len(all))
	}
	for name, f := range all {
		if r, err := verifyBytes(t, f.text, trusting(t)); !errors.Is(err, ErrNoBundle) || !strings.Contains(err.Error(), f.why) {
			t.Errorf("%s: Verify = %+v, %v; want %v: %s", name, r, err, ErrNoBundle, f.why)
		}
	}
	if _, err := Verify(t.Context(), zeroFile{}, maxTotal+1, Trust{}); !errors.Is(err, ErrNoBundle) {
		t.Errorf("Verify of more than 4 GiB = %v; want %v", err, ErrNoBundle)
	}
}

func TestEveryProgramForTarsReadsABundle(t *testing.T) {
	r := tar.NewReader(bytes.NewReader(newMade(t).write(t)))
	var names []string
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		try(t, err)
		names = append(names, h.Name)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Mode != 0o644 {
			t.Errorf("%s belongs to %d:%d %q and has mode %o; want 0:0 and 644", h.Name, h.Uid, h.Gid, h.Uname, h.Mode)
		}
	}
	if !slices.IsSorted(names) || !slices.Contains(names, manifestName) {
		t.Errorf("the files are %v; want them sorted, with %s", names, manifestName)
	}
}

// A file that changes while it is verified must not be read as two files.
func TestAFileThatChangesMeanwhileIsNoBundle(t *testing.T) {
	whole := newMade(t).write(t)
	for _, name := range []string{manifestName, statementName, approvalsName, eventsName, sealsName} {
		b, err := open(bytes.NewReader(whole), int64(len(whole)))
		try(t, err)
		changing := bytes.Clone(whole)
		changing[b.find(name).offset+b.find(name).size-1] = ' '
		b.file = bytes.NewReader(changing)
		if err := newVerifier(b, trusting(t)).verify(t.Context()); name != manifestName && err == nil {
			t.Errorf("%s changed after the first reading, and nothing is said", name)
		}
		if _, err := b.small(name, maxManifest); err == nil {
			t.Errorf("%s changed after the first reading, and is read", name)
		}
	}
}
