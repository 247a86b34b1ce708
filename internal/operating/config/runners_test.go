package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// loadText loads a configuration.
func loadText(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path, "")
}

func TestRunnersThatSSHCannotReachAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"runners: [{name: GPU, ssh: gpu}]":                `runners[0].name: "GPU" is no name`,
		"runners: [{name: owner, ssh: gpu}]":              `runners[0].name: "owner" is no name`,
		"runners: [{ssh: gpu}]":                           `runners[0].name: "" is no name`,
		"runners: [{name: a, ssh: a}, {name: a, ssh: b}]": `runners[1].name: "a" is there twice`,
		"runners: [{name: a}]":                            `runners[0].ssh: "" is no host`,
		"runners: [{name: a, ssh: -oProxyCommand=x}]":     "runners[0].ssh: ",
		"runners: [{name: a, ssh: 'a; b'}]":               "runners[0].ssh: ",
		"{runners: [{name: a, ssh: a}], remote: {url: 'tls://hub:4222', credentials: /x/hub.nk}}": "runners: have a hub of their own",
	} {
		_, err := loadText(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v; want %q", text, err, want)
		}
	}
	cfg, err := loadText(t, "runners: [{name: gpu-1, ssh: me@gpu.example.com}]")
	if err != nil || len(SSHRunners(cfg.Runners)) != 1 || SSHRunners(cfg.Runners)[0].Destination != "me@gpu.example.com" {
		t.Errorf("got %+v, %v", SSHRunners(cfg.Runners), err)
	}
}
