package backup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/stores/dirtree"
)

// configName is a directory that a person may add to a backup, with the configuration. Restore
// reads nothing of it, so no digest covers it.
const configName = "config"

// digestsName is the file with a line of JSON for each object of a backup. The record has its digest.
const digestsName = "digests.jsonl"

// A digested is a line of digests.jsonl: an object of a backup. Modes and times are not compared.
type digested struct {
	Path   string `json:"path"`             // relative to the backup
	SHA256 string `json:"sha256,omitempty"` // of a file, in hexadecimal
	Sparse bool   `json:"sparse,omitzero"`  // SHA256 is that of sparseDigest
	Link   string `json:"link,omitempty"`   // the target of a symbolic link
	Dir    bool   `json:"dir,omitzero"`
}

// digestAll lists the objects of a backup with their digests, sorted by path. It refuses objects
// that no backup has. Sparse says for which files to use sparseDigest.
func digestAll(ctx context.Context, dir string, sparse func(path string, info fs.FileInfo) bool) (all []digested, err error) {
	c, err := dirtree.Open(dir, dirtree.Options{Mounts: true})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	d := digester{at: c, sparse: sparse}
	for _, name := range []string{mailboxName, stateName} {
		if err := d.directory(ctx, name, name); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(d.all, func(a, b digested) int { return cmp.Compare(a.Path, b.Path) })
	return d.all, nil
}

// A digester collects the objects below its place.
type digester struct {
	at     *dirtree.Cursor
	sparse func(path string, info fs.FileInfo) bool
	all    []digested
}

// directory adds a directory of the current one, with what is in it.
func (d *digester) directory(ctx context.Context, name, full string) error {
	if err := d.at.Enter(name); err != nil {
		return fmt.Errorf("%s is no directory of a backup: %w", term.OneLine(full), err)
	}
	d.all = append(d.all, digested{Path: full, Dir: true})
	dirs, err := d.files(ctx, full)
	for _, dir := range dirs {
		if err == nil {
			err = d.directory(ctx, dir, full+"/"+dir)
		}
	}
	return errors.Join(err, d.at.Leave())
}

// files adds all but the directories of the current directory, and returns these.
func (d *digester) files(ctx context.Context, full string) (dirs []string, err error) {
	root, err := d.at.Root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			break
		}
		of := digested{Path: full + "/" + e.Name()}
		switch e.Type() {
		case fs.ModeDir:
			dirs = append(dirs, e.Name())
			continue
		case fs.ModeSymlink:
			of.Link, err = root.Readlink(e.Name())
		case 0:
			err = d.file(root, e.Name(), &of)
		default:
			err = fmt.Errorf("%s is of a kind that no backup has", term.OneLine(of.Path))
		}
		d.all = append(d.all, of)
	}
	return dirs, err
}

// file adds the digest of a file.
func (d *digester) file(root *os.Root, name string, of *digested) error {
	file, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	sum := sha256.New()
	switch {
	case err != nil:
	case d.sparse(of.Path, info):
		of.Sparse = true
		err = sparseDigest(sum, file, info.Size())
	default:
		_, err = io.Copy(sum, file)
	}
	of.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return errors.Join(err, file.Close())
}

// A file of the mailbox can claim any size. From smallSparse on, what is mostly holes is not read as
// zeros.
const (
	smallSparse = 64 << 20
	sparseBlock = 64 << 10
)

func mostlyHoles(_ string, info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Size() > smallSparse && st.Blocks*512 < info.Size()/2
}

// sparseDigest hashes the blocks of 64 KiB that are not zero, each behind its offset, and then the
// size. Where a file has holes doesn't matter.
func sparseDigest(sum hash.Hash, file *os.File, size int64) error {
	block, zeros := make([]byte, sparseBlock), make([]byte, sparseBlock)
	for at := int64(0); at < size; {
		data, err := file.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break
		}
		if err != nil {
			return err
		}
		at = data - data%sparseBlock
		n, err := file.ReadAt(block, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if !bytes.Equal(block[:n], zeros[:n]) {
			fmt.Fprintf(sum, "%d:%d\n", at, n)
			sum.Write(block[:n])
		}
		at += sparseBlock
	}
	fmt.Fprintf(sum, "%d\n", size)
	return nil
}

// writeDigests writes the digests of a backup, and notes that of their file in the record.
func (r *Record) writeDigests(ctx context.Context, dir string) error {
	all, err := digestAll(ctx, dir, mostlyHoles)
	if err != nil {
		return fmt.Errorf("digest files: %w", err)
	}
	var text bytes.Buffer
	enc := jsontext.NewEncoder(&text)
	for _, of := range all {
		if err := json.MarshalEncode(enc, of); err != nil {
			return err
		}
	}
	sum := sha256.Sum256(text.Bytes())
	r.Digests = hex.EncodeToString(sum[:])
	return dirtree.WriteFile(filepath.Join(dir, digestsName), text.Bytes())
}

// An EditedError says that a backup isn't what it was when it was made.
type EditedError struct{ Changes []string } // such as "changed state/ledger.db"

func (e *EditedError) Error() string {
	const shown = 10
	text := strings.Join(e.Changes[:min(len(e.Changes), shown)], ", ")
	if more := len(e.Changes) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "the backup was changed after it was made: " + text + "; restore another one"
}

// verify compares a backup with its digests. The error is an *EditedError for a difference. A backup
// of an earlier version has none.
func (r Record) verify(ctx context.Context, dir string) error {
	if err := checkNames(dir, r.Format); err != nil {
		return err
	}
	if r.Format == formatWithoutDigests {
		return nil
	}
	if r.Digest != r.digest() {
		return &EditedError{[]string{"changed " + recordName}}
	}
	text, err := os.ReadFile(filepath.Join(dir, digestsName))
	if errors.Is(err, fs.ErrNotExist) {
		return &EditedError{[]string{"removed " + digestsName}}
	}
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != r.Digests {
		return &EditedError{[]string{"changed " + digestsName}}
	}
	made := map[string]digested{}
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	for dec.PeekKind() != jsontext.KindInvalid {
		var of digested
		if err := json.UnmarshalDecode(dec, &of); err != nil {
			return fmt.Errorf("read %s: %w", digestsName, err)
		}
		made[of.Path] = of
	}
	now, err := digestAll(ctx, dir, func(path string, _ fs.FileInfo) bool { return made[path].Sparse })
	if err != nil {
		return fmt.Errorf("the backup was changed after it was made: %w", err)
	}
	return changesOf(made, now)
}

// changesOf returns an *EditedError about the differences, or nil.
func changesOf(made map[string]digested, now []digested) error {
	var changes []string
	for _, of := range now {
		before, known := made[of.Path]
		switch {
		case !known:
			changes = append(changes, "added "+term.OneLine(of.Path))
		case before != of:
			changes = append(changes, "changed "+term.OneLine(of.Path))
		}
		delete(made, of.Path)
	}
	for name := range made {
		if _, above := made[path.Dir(name)]; !above { // the directory says it
			changes = append(changes, "removed "+term.OneLine(name))
		}
	}
	if len(changes) == 0 {
		return nil
	}
	slices.Sort(changes)
	return &EditedError{changes}
}

// checkNames refuses entries of a backup that are not of the kind that they have to be, or that it
// doesn't have.
func checkNames(dir string, format int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var changes []string
	for _, e := range entries {
		switch name := e.Name(); name {
		case mailboxName, stateName, configName:
			if !e.IsDir() {
				changes = append(changes, "changed "+name)
			}
		case recordName, digestsName:
			if !e.Type().IsRegular() || name == digestsName && format == formatWithoutDigests {
				changes = append(changes, "changed "+recordName)
			}
		default:
			if format != formatWithoutDigests {
				changes = append(changes, "added "+term.OneLine(name))
			}
		}
	}
	if len(changes) > 0 {
		return &EditedError{changes}
	}
	return nil
}

// digest returns the SHA-256 of a record without its Digest, in hexadecimal.
func (r Record) digest() string {
	r.Digest = ""
	text, err := json.Marshal(r)
	if err != nil {
		return "" // not possible: all fields are plain
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
