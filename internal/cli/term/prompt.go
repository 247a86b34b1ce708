package term

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
)

// Interactive reports whether somebody can answer questions: the input is a terminal.
func Interactive() bool { return isatty.IsTerminal(os.Stdin.Fd()) }

// Prompt writes a question to the controlling terminal, and returns the line that is typed
// there. It works while input and output are redirected. It fails without a controlling
// terminal, and when ctx ends.
func Prompt(ctx context.Context, question string) (string, error) {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("open controlling terminal: %w", err)
	}
	defer terminal.Close()
	defer context.AfterFunc(ctx, func() { _ = terminal.SetReadDeadline(time.Unix(1, 0)) })() // ends the read
	if _, err := io.WriteString(terminal, question); err != nil {
		return "", fmt.Errorf("write to controlling terminal: %w", err)
	}
	line, err := bufio.NewReader(terminal).ReadString('\n')
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("read controlling terminal: %w", err)
	}
	return strings.TrimSpace(line), nil
}

// Confirm asks a question at the controlling terminal. Only y and yes agree.
func Confirm(ctx context.Context, question string) (bool, error) {
	answer, err := Prompt(ctx, question+" [y/N] ")
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes", err
}
