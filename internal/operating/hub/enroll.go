package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/running/carrier"
)

// reserved are names that no runner may have: their inboxes are of others.
var reserved = []string{"owner", "hub"}

// An Enrolment is a new runner of a hub.
type Enrolment struct {
	Runner      string
	URL         string
	Credentials string // the file to copy to the runner
}

// CheckName refuses a name that no runner may have.
func CheckName(name string) error {
	if fleet.Name(name) != nil || slices.Contains(reserved, name) {
		return fmt.Errorf("runner %q: name it by %s, and not %s", name, fleet.NameRule, strings.Join(reserved, " or "))
	}
	return nil
}

// Enroll makes the key of a runner. A hub that serves lets it in within seconds.
func Enroll(dir, name string) (Enrolment, error) {
	set, err := readSettings(dir)
	if err != nil {
		return Enrolment{}, err
	}
	if err := CheckName(name); err != nil {
		return Enrolment{}, err
	}
	certificate, err := certificateOf(dir)
	if err != nil {
		return Enrolment{}, err
	}
	seed, public, err := newKey()
	if err != nil {
		return Enrolment{}, err
	}
	user := filepath.Join(dir, runnersDir, name)
	if _, err := os.Lstat(user); err == nil {
		return Enrolment{}, twice(name)
	}
	credentials := carrier.Credentials{Seed: seed, Runner: name, Root: set.Root, Hub: certificate}
	file := filepath.Join(dir, credentialsDir, name+".nk")
	if err := writeFile(file, credentials.Text(), false); err != nil {
		return Enrolment{}, fmt.Errorf("write the credentials of runner %s: %w", name, err)
	}
	err = writeFile(user, []byte(public+"\n"), true)
	if errors.Is(err, fs.ErrExist) {
		return Enrolment{}, twice(name)
	}
	if err != nil {
		return Enrolment{}, fmt.Errorf("enroll runner %s: %w", name, err)
	}
	return Enrolment{Runner: name, URL: set.url(dir), Credentials: file}, nil
}

func twice(name string) error {
	return fmt.Errorf("runner %s is enrolled already; choose another name, or run: mailboxd-hub remove %s", name, name)
}

// Remove takes a runner's access away. A hub that serves ends its connections within seconds.
func Remove(dir, name string) error {
	if _, err := readSettings(dir); err != nil {
		return err
	}
	if fleet.Name(name) != nil {
		return fmt.Errorf("runner %q: no runner has such a name", name)
	}
	err := os.Remove(filepath.Join(dir, runnersDir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("runner %s is not enrolled", name)
	}
	if err == nil {
		err = os.Remove(filepath.Join(dir, credentialsDir, name+".nk"))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove runner %s: %w", name, err)
	}
	return nil
}

// readUsers returns who may log in. A file of a runner that can't be used is skipped with a warning.
func readUsers(dir string, set settings, warn func(string)) ([]*server.NkeyUser, error) {
	users := []*server.NkeyUser{{Nkey: set.Owner}}
	entries, err := os.ReadDir(filepath.Join(dir, runnersDir))
	if err != nil {
		return nil, fmt.Errorf("read the runners of the hub: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		if hidden(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, runnersDir, name))
		key := strings.TrimSpace(string(text))
		switch {
		case err != nil:
			warn(fmt.Sprintf("runner %s is not let in: %v", name, err))
		case CheckName(name) != nil || !nkeys.IsValidPublicUserKey(key):
			warn(fmt.Sprintf("runner %s is not let in: %s has no public key of a runner", name, filepath.Join(dir, runnersDir, name)))
		default:
			users = append(users, &server.NkeyUser{Nkey: key, Permissions: permissions(set.Root, name)})
		}
	}
	return users, nil
}

// permissions are the subjects that a runner may use: its own, and of JetStream those of its buckets. It
// may read what the owner put for it, and write what it puts for the owner. It can't make a consumer of
// what it wrote, since JetStream delivers to any subject that a consumer names; and it can't get a message of
// its own as it is, which would go with its headers to any subject that the request names.
func permissions(root, name string) *server.Permissions {
	own := "mbx." + root + ".*." + name
	in, out := "OBJ_in_"+name, "OBJ_out_"+name
	publish := []string{
		own, own + ".>", "$O.out_" + name + ".>", "$JS.API.INFO",
		"$JS.API.STREAM.INFO." + in, "$JS.API.STREAM.MSG.GET." + in, "$JS.API.DIRECT.GET." + in, "$JS.API.DIRECT.GET." + in + ".>",
		"$JS.API.CONSUMER.CREATE." + in, "$JS.API.CONSUMER.*." + in + ".>", "$JS.API.CONSUMER.MSG.NEXT." + in + ".>",
		"$JS.ACK." + in + ".>", "$JS.FC." + in + ".>",
		"$JS.API.STREAM.INFO." + out, "$JS.API.STREAM.MSG.GET." + out, "$JS.API.STREAM.PURGE." + out,
	}
	subscribe := []string{"mbx." + root + ".to." + name + ".>", "_INBOX." + root + "." + name + ".>"}
	return &server.Permissions{Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe}}
}
