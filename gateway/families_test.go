package gateway

import (
	"fmt"
	"testing"

	"github.com/prism-shadow/mmsp-go/gateway/config"
)

// TestFamilyClientsAreBounded: callers who make up ids take no memory.
func TestFamilyClientsAreBounded(t *testing.T) {
	c := config.Defaults()
	s, err := environmentState(&c, func(name string) string { return map[string]string{"OPENAI_API_KEY": "k"}[name] })
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * maxFamilyModels {
		if _, ok := s.row(fmt.Sprint("gpt-", i)); !ok {
			t.Fatalf("gpt-%d is not served", i)
		}
	}
	if n := len(s.families.made); n != maxFamilyModels {
		t.Errorf("%d clients are kept", n)
	}
}
