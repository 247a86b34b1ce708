package breakout

import (
	"errors"
	"strings"
	"testing"
)

func TestASecretIsFoundWhereverItIsInALongText(t *testing.T) {
	secret, other := NewSecret(), NewSecret()
	targets := Targets{Secret: DigestOf(secret)}
	const part = 1 << 20
	for _, before := range []int{0, 5, part - len(secret), part - 20, part - 1, part, 2*part - 30, 3 * part} {
		text := strings.Repeat("x", before)
		if err := targets.find(strings.NewReader(text + secret + "behind")); err != nil {
			t.Errorf("behind %d bytes, the secret is not found: %v", before, err)
		}
		for _, wrong := range []string{other, secret[:len(secret)-1], DigestOf(secret), secretStart} {
			if err := targets.find(strings.NewReader(text + wrong)); !errors.Is(err, errNotFound) {
				t.Errorf("behind %d bytes, %q was taken for the secret: %v", before, wrong, err)
			}
		}
	}
	if err := targets.find(strings.NewReader(secretStart + other + secret)); err != nil {
		t.Errorf("behind another secret, it is not found: %v", err)
	}
}
