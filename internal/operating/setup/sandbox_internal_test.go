package setup

import (
	"slices"
	"strings"
	"testing"
)

func TestTheSandboxOfAFirstConfigurationReachesTheProviderOfTheEnvironment(t *testing.T) {
	c := foundCLI{cli: cli{name: "claude", profile: "claude"}, env: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"}, path: "/bin/claude", sandbox: "workspace"}
	for address, host := range map[string]string{"https://models.example.com/v1": "models.example.com", "https://10.1.2.3:8443": "10.1.2.3:8443"} {
		t.Setenv("ANTHROPIC_BASE_URL", address)
		hosts, err := c.providerHosts()
		if err != nil || !slices.Contains(hosts, host) || !slices.Contains(hosts, "platform.claude.com") {
			t.Errorf("with %s the hosts are %q, %v; want %s among those of the profile", address, hosts, err, host)
		}
		c.network = hosts
		if entry := c.entry(); !strings.Contains(entry, `sandbox: {profile: workspace, network: ["api.anthropic.com",`) || !strings.Contains(entry, `"`+host+`"]}`) {
			t.Errorf("the entry is\n%s\nwant the list with %s", entry, host)
		}
	}
	for _, address := range []string{"http://127.0.0.1:8080", "http://models.example.com", "models.example.com", "https://", "https://user:secret@x y"} {
		t.Setenv("ANTHROPIC_BASE_URL", address)
		hosts, err := c.providerHosts()
		if err == nil || hosts != nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("with %s the hosts are %q, %v; want none, since the sandbox can't reach it", address, hosts, err)
		}
	}
	c.env = nil
	if hosts, err := c.providerHosts(); hosts != nil || err != nil {
		t.Errorf("without an address the hosts are %q, %v; want those of the profile", hosts, err)
	}
}
