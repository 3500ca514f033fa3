package mmsp_test

import (
	"testing"

	. "github.com/prism-shadow/mmsp-go"
)

func TestEffectiveThinkingLevel(t *testing.T) {
	for _, c := range []struct {
		level  ThinkingLevel
		budget *int64
		want   ThinkingLevel
	}{
		{"", nil, ""},
		{ThinkingLow, nil, ThinkingLow},
		{ThinkingLow, new(int64(100_000)), ThinkingLow},
		{ThinkingHigh, new(int64(0)), ThinkingHigh},
		{"", new(int64(-1)), ""},
		{"", new(int64(0)), ThinkingNone},
		{"", new(int64(1)), ThinkingLow},
		{"", new(int64(1024)), ThinkingLow},
		{"", new(int64(4607)), ThinkingLow},
		{"", new(int64(4608)), ThinkingMedium},
		{"", new(int64(8192)), ThinkingMedium},
		{"", new(int64(16384)), ThinkingHigh},
		{"", new(int64(31999)), ThinkingHigh},
		{"", new(int64(36864)), ThinkingXHigh},
		{"", new(int64(65535)), ThinkingXHigh},
		{"", new(int64(65536)), ThinkingMax},
	} {
		config := Config{ThinkingLevel: c.level, ThinkingBudget: c.budget}
		if got := config.EffectiveThinkingLevel(); got != c.want {
			t.Errorf("%q with %d tokens: got %q, want %q", c.level, c.budget, got, c.want)
		}
	}
}
