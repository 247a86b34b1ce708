package dial

import (
	"strings"
	"testing"
)

func TestNoServiceHasAnAddressOfTheLinkOrOfACloud(t *testing.T) {
	for address, plain := range map[string]bool{
		"169.254.169.254:80": false, "[fe80::1]:443": false, "[fe80::1%eth0]:443": false, "[::ffff:169.254.169.254]:443": false,
		"[64:ff9b::a9fe:a9fe]:443": false, "[fd00:ec2::254]:80": false, "[ff02::1]:443": false, "10.0.0.1:80": true, "[::]:443": false,
	} {
		if err := checkAddress(address, plain); err == nil {
			t.Errorf("%s, plain %v: allowed", address, plain)
		}
	}
	for address, plain := range map[string]bool{"10.0.0.1:443": false, "127.0.0.1:80": true, "[::1]:80": true, "[2001:db8::1]:443": false} {
		if err := checkAddress(address, plain); err != nil {
			t.Errorf("%s, plain %v: %v", address, plain, err)
		}
	}
}

func TestAnAddressIsHTTPSOrOnThisMachine(t *testing.T) {
	for url, words := range map[string]string{
		"https://a.example.com/run":       "",
		"https://a.example.com:8443/?x=1": "",
		"http://127.0.0.1:80/":            "",
		"http://[::1]:80":                 "",
		"http://localhost":                "",
		"http://a.example.com":            "is not encrypted",
		"https://user:pw@a.example.com":   "bearer_env",
		"ftp://a":                         "is not the address of a service",
		"":                                "is not the address of a service",
		"https://":                        "is not the address of a service",
		"https://a/#b":                    "fragment",
		"://":                             "is not a URL",
	} {
		err := CheckURL(url)
		if (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("CheckURL(%q) = %v; want %q", url, err, words)
		}
	}
}
