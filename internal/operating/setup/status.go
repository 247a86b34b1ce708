package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/service"
)

// A ServiceStatus is the state of the service, as --json shows it.
type ServiceStatus struct {
	Unit      string `json:"unit"`
	Installed bool   `json:"installed"`
	Active    string `json:"active"` // systemd's word; "" where it cannot be asked
	Enabled   bool   `json:"enabled"`
	Linger    bool   `json:"linger"`
	PID       string `json:"pid,omitempty"`
	Path      string `json:"path,omitempty"`
	Trouble   string `json:"trouble,omitempty"` // why systemd cannot be asked
}

// ReadServiceStatus asks systemd for the state of the service.
func ReadServiceStatus(ctx context.Context) (ServiceStatus, error) {
	path, err := service.Path()
	if err != nil {
		return ServiceStatus{}, err
	}
	view := ServiceStatus{Unit: path, Linger: service.Lingers(ctx)}
	text, err := service.Installed()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return view, err
	}
	view.Installed, view.Path = err == nil, service.PathOf(text)
	status, err := service.Ask(ctx)
	if err != nil {
		view.Trouble = err.Error()
		return view, nil
	}
	view.Active, view.Enabled = status.Active, status.Enabled
	if status.PID != "0" {
		view.PID = status.PID
	}
	return view, nil
}

// Print prints the state for people.
func (s ServiceStatus) Print(w io.Writer) error {
	if !s.Installed {
		fmt.Fprintln(w, "not installed; see: mailboxd service install")
	} else {
		fmt.Fprintf(w, "unit      %s\n", s.Unit)
	}
	switch {
	case s.Trouble != "":
		fmt.Fprintf(w, "state     unknown: %s\n", term.Escape(s.Trouble))
	case s.PID != "":
		fmt.Fprintf(w, "state     %s, process %s\n", s.Active, s.PID)
	default:
		fmt.Fprintf(w, "state     %s\n", s.Active)
	}
	if !s.Installed {
		return nil
	}
	fmt.Fprintf(w, "at login  %s\n", yesOrNo(s.Enabled, "starts", "does not start"))
	fmt.Fprintf(w, "at logout %s\n", yesOrNo(s.Linger, "keeps running", "stops; to keep it running: mailboxd service install --linger"))
	_, err := fmt.Fprintf(w, "PATH      %s\n", s.Path)
	return err
}

func yesOrNo(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
