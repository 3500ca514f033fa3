package auto_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/auto"
	"github.com/prism-shadow/mmsp-go/registry"
)

// TestRegistry builds the client of every supported model, from the row and a key alone, and looks at the request that it
// would send: it goes to the row's host, for the row's model. A row whose client type is the family's own needs no client type.
func TestRegistry(t *testing.T) {
	for _, row := range registry.List(registry.USD) {
		t.Run(row.BaseURL+"/"+row.ID, func(t *testing.T) {
			o := mmsp.Options{
				ClientType: row.ClientType, BaseURL: row.BaseURL, APIKey: mmsp.NewSecret("planted-key"),
				Getenv: func(string) string { return "" }, HTTPClient: &http.Client{Transport: refusal{}},
			}
			client, err := auto.New(row.ID, o)
			if err != nil {
				t.Fatal(err)
			}
			provider := client.Provider()
			if named, ok := provider.(interface{ Model() string }); !ok || named.Model() != row.ID {
				t.Errorf("the model is not %s", row.ID)
			}
			embeds := row.Output[0] == registry.Embed
			if strings.Contains(provider.Class(), "Embedding") && !embeds {
				t.Errorf("%s for a model that makes %s", provider.Class(), row.Output)
			}
			request, err := provider.Prepare(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi."))}, &mmsp.Config{})
			if err != nil {
				t.Fatal(err)
			}
			to, err := url.Parse(request.URL)
			if at, _ := url.Parse(row.BaseURL); err != nil || to.Scheme != "https" || to.Host != at.Host || !strings.HasPrefix(to.Path, strings.TrimSuffix(at.Path, "/")) {
				t.Errorf("%s is not below %s", request.URL, row.BaseURL)
			}
			if text := string(request.Body) + request.URL; !json.Valid(request.Body) || !strings.Contains(text, row.ID) || strings.Contains(text, "planted-key") {
				t.Errorf("%s: %s", request.URL, request.Body)
			}
			wantEmbedding := strings.HasSuffix(to.Path, "/embeddings") || strings.HasSuffix(to.Path, ":batchEmbedContents")
			if wantEmbedding != embeds {
				t.Errorf("%s for a model that makes %s", request.URL, row.Output)
			}

			if slices.Contains(row.Input, registry.Image) && slices.Contains(row.Output, registry.Text) {
				picture := mmsp.UserMessage(mmsp.ImageURL("data:image/png;base64,iVBORw0KGgo="))
				if _, err := provider.Prepare(t.Context(), []mmsp.Message{picture}, &mmsp.Config{}); err != nil {
					t.Errorf("an image: %v", err)
				}
			}
			if family, ok := auto.Family(row.ID); ok && family.Name == row.ClientType {
				o.ClientType = ""
				client, err := auto.New(row.ID, o)
				if err != nil || client.Provider().Class() != provider.Class() {
					t.Errorf("by its family: %v", err)
				}
			}
		})
	}
}

// refusal is a transport that sends nothing.
type refusal struct{}

func (refusal) RoundTrip(*http.Request) (*http.Response, error) { return nil, http.ErrServerClosed }
