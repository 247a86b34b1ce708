package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/internal/access/gateway"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/config"
)

func gatewayCommand(g *globals) *cobra.Command {
	var opts gateway.Options
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Let A2A clients send tasks",
		Long: `Serve the agents of the mailbox to clients that speak A2A, until Ctrl-C. Each client
logs in with the token of a sender, and sees the tasks of that sender alone. Its
messages become task lines, which the daemon judges as any other.

Away from the loopback interface, it needs a certificate and the host name that
clients use.`,
		Example: `  mailboxd gateway token acme
  mailboxd gateway --listen 127.0.0.1:7070`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := g.load()
			if err != nil {
				return err
			}
			opts.Location, opts.Version, opts.MaxLine = locationOf(cfg), version(), cfg.Intake.MaxLineBytes
			opts.Log = term.NewLogger(cmd.ErrOrStderr(), cfg.Log.Level, cfg.Log.Format)
			opts.Senders = (&senderSource{globals: g, file: cfg.File()}).senders
			opts.Ready = func(url string) { fmt.Fprintf(cmd.OutOrStdout(), "A2A clients reach this mailbox at %s\n", url) }
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(50) // it waits most of the time: 40 clients at once take 36 MB at most instead of 39
			}
			return withExitCode(gateway.Serve(cmd.Context(), opts))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.Listen, "listen", "127.0.0.1:7070", "`ADDRESS` and port")
	flags.StringVar(&opts.Cert, "cert", "", "`FILE` of the certificate, in PEM")
	flags.StringVar(&opts.Key, "key", "", "`FILE` of the key of the certificate")
	flags.StringVar(&opts.Host, "host", "", "`NAME` by which clients ask for the gateway")
	flags.IntVar(&opts.Rate, "rate", 100, "`REQUESTS` of each sender in a second; ten seconds of them may come at once")
	cmd.AddCommand(gatewayTokenCommand())
	return cmd
}

// tokenText is what the command prints of a token; senders: begins a part of a configuration.
const tokenText = `The token of %s, which is shown once:

%s

Its entry in the configuration:

senders:
  - name: %s
    token: "%s"
`

func gatewayTokenCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "token NAME",
		Short: "Make a token with which a sender logs in",
		Long: `Print a new token for a sender, and the entry of the configuration that has its
SHA-256. The token is shown once, and kept nowhere.`,
		Example: `  mailboxd gateway token acme`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, w := args[0], cmd.OutOrStdout()
			if !config.IsLoginName(name) {
				return exit.With(exit.Usage, "name the sender by 1 to 64 of A-Z a-z 0-9 . _ @ -, and not mailboxd")
			}
			secret := make([]byte, 32)
			_, _ = rand.Read(secret) // never fails
			token := "mbx_" + base64.RawURLEncoding.EncodeToString(secret)
			sum := sha256.Sum256([]byte(token))
			digest := hex.EncodeToString(sum[:])
			if asJSON {
				return term.PrintJSON(w, map[string]string{"sender": name, "token": token, "sha256": digest})
			}
			_, err := fmt.Fprintf(w, tokenText, name, token, name, digest)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// A senderSource reads who may log in, again when the configuration file has changed: a token that was
// removed there counts no longer.
type senderSource struct {
	globals *globals
	file    string // "" for none

	mu    sync.Mutex // guards the fields below
	known []gateway.Sender
	stamp string // of the file as it was read
}

// senders returns the senders with a token. A file with mistakes has none.
func (s *senderSource) senders() ([]gateway.Sender, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stamp := "none"
	if info, err := os.Stat(s.file); err == nil {
		stamp = fmt.Sprint(info.ModTime().Format(time.RFC3339Nano), " ", info.Size())
	}
	if stamp == s.stamp {
		return s.known, nil
	}
	cfg, err := s.globals.load()
	if err != nil {
		return nil, fmt.Errorf("read who may log in: %w", err)
	}
	s.known, s.stamp = nil, stamp
	for _, one := range config.Logins(cfg) {
		s.known = append(s.known, gateway.Sender{Name: one.Name, Digest: one.Digest, Agents: one.May})
	}
	return s.known, nil
}
