package reader

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"

	"mailboxd/internal/client"
	"mailboxd/internal/runner"
)

// maxRefused is how many bytes of a list of refused hosts are read.
const maxRefused = 64 << 10

// refusedHosts returns the hosts that the gate of a run refused; none without a gate.
func refusedHosts(dir string) (all []client.RefusedHost) {
	if dir == "" {
		return nil
	}
	file, err := OpenRegular(filepath.Join(dir, runner.RefusedFile))
	if err != nil {
		return nil
	}
	defer file.Close()
	text, _ := io.ReadAll(io.LimitReader(file, maxRefused)) // a part is better than nothing
	for line := range bytes.Lines(text) {
		var host client.RefusedHost
		if json.Unmarshal(line, &host) == nil && host.Host != "" {
			all = append(all, host)
		}
	}
	return all
}
