package carrier

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"
)

// newSeed makes the seed of a user.
func newSeed(t *testing.T) string {
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := key.Seed()
	if err != nil {
		t.Fatal(err)
	}
	return string(seed)
}

func TestCredentialsAreReadAsTheyWereWritten(t *testing.T) {
	certificate := "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	want := Credentials{Seed: newSeed(t), Runner: "gpu-1", Root: "main", Hub: []byte(certificate)}
	got, err := ParseCredentials(want.Text())
	if err != nil || got.Seed != want.Seed || got.Runner != "gpu-1" || got.Root != "main" || string(got.Hub) != certificate {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got, err := ParseCredentials([]byte(want.Seed)); err != nil || got.Seed != want.Seed { // as nsc and nk write it
		t.Errorf("a seed alone gives %+v, %v", got, err)
	}
}

func TestDamagedCredentialsAreRefused(t *testing.T) {
	seed := newSeed(t)
	for text, want := range map[string]string{
		"":                                   "no seed",
		"SUABC":                              "no seed",
		seed + "\nrunner: ../x":              "unknown line",
		seed + "\n" + newSeed(t):             "unknown line",
		seed + "\nfoo: bar":                  "unknown line",
		seed + "\n-----BEGIN CERTIFICATE---": "certificate is damaged",
	} {
		if _, err := ParseCredentials([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v; want %q", text, err, want)
		} else if strings.Contains(err.Error(), seed) {
			t.Errorf("%v shows the seed", err)
		}
	}
}

func TestCredentialsThatOthersMayReadAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hub.nk")
	if err := os.WriteFile(path, Credentials{Seed: newSeed(t)}.Text(), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadCredentials(path); err == nil || !strings.Contains(err.Error(), "run: chmod 600 "+path) {
		t.Errorf("got %v; want the next step", err)
	}
}
