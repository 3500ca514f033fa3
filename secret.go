package mmsp

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a credential that cannot print: every formatting verb, slog and JSON show a mask. Reveal gives the text,
// and is called only where a credential is put into the header it was given for.
type Secret struct{ value *string }

// NewSecret wraps a credential. The empty string stands for "none".
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{&value}
}

// Reveal returns the credential itself.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether there is no credential.
func (s Secret) IsZero() bool { return s.value == nil }

const secretMask = "[secret]"

// Format prints the mask for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, secretMask) }

func (s Secret) String() string                { return secretMask }
func (s Secret) GoString() string              { return secretMask }
func (s Secret) LogValue() slog.Value          { return slog.StringValue(secretMask) }
func (s Secret) MarshalText() ([]byte, error)  { return []byte(secretMask), nil }
func (s Secret) MarshalJSON() ([]byte, error)  { return []byte(`"` + secretMask + `"`), nil }
func (s *Secret) UnmarshalText(b []byte) error { *s = NewSecret(string(b)); return nil }
