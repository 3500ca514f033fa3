// Package auto makes the client of a model: by its client type, or by the family that the model id belongs to.
package auto

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/clients/ant_messages"
	"github.com/prism-shadow/mmsp-go/clients/anthropic_official"
	"github.com/prism-shadow/mmsp-go/clients/deepseek_official"
	"github.com/prism-shadow/mmsp-go/clients/google_genai"
	"github.com/prism-shadow/mmsp-go/clients/google_official"
	"github.com/prism-shadow/mmsp-go/clients/minimax_official"
	"github.com/prism-shadow/mmsp-go/clients/mmsp"
	"github.com/prism-shadow/mmsp-go/clients/moonshot_official"
	"github.com/prism-shadow/mmsp-go/clients/openai_chat"
	"github.com/prism-shadow/mmsp-go/clients/openai_chat_vllm_adapter"
	"github.com/prism-shadow/mmsp-go/clients/openai_embedding"
	"github.com/prism-shadow/mmsp-go/clients/openai_official"
	"github.com/prism-shadow/mmsp-go/clients/openai_responses"
	"github.com/prism-shadow/mmsp-go/clients/zai_official"
)

// Type is one client type.
type Type struct {
	Name     string // such as "openai-chat"
	New      func(mmsp.Options) (mmsp.Provider, error)
	Protocol string // that it speaks: responses, messages, interactions, generateContent, chat, embeddings or mmsp

	// Of the official clients, which speak a vendor's own API and are chosen by the family of a model id.
	Vendor   string
	KeyVar   string   // environment variable of the key
	Families []string // lower-case prefixes of the vendor's model ids
}

// types is the one table of client types: the official ones first, then the compatible ones.
var types = []Type{
	{Name: "openai-official", New: openAI, Protocol: "responses", Vendor: "OpenAI", KeyVar: "OPENAI_API_KEY", Families: []string{"gpt-", "text-embedding-"}},
	{Name: "anthropic-official", New: provider(anthropicofficial.New), Protocol: "messages", Vendor: "Anthropic", KeyVar: "ANTHROPIC_API_KEY", Families: []string{"claude-"}},
	{Name: "google-official", New: provider(googleofficial.New), Protocol: "interactions", Vendor: "Google", KeyVar: "GEMINI_API_KEY", Families: []string{"gemini-"}},
	{Name: "zai-official", New: provider(zaiofficial.New), Protocol: "chat", Vendor: "Z.ai", KeyVar: "ZAI_API_KEY", Families: []string{"glm-"}},
	{Name: "moonshot-official", New: provider(moonshotofficial.New), Protocol: "chat", Vendor: "Moonshot", KeyVar: "MOONSHOT_API_KEY", Families: []string{"kimi-"}},
	{Name: "deepseek-official", New: provider(deepseekofficial.New), Protocol: "responses", Vendor: "DeepSeek", KeyVar: "DEEPSEEK_API_KEY", Families: []string{"deepseek-"}},
	{Name: "minimax-official", New: provider(minimaxofficial.New), Protocol: "responses", Vendor: "MiniMax", KeyVar: "MINIMAX_API_KEY", Families: []string{"minimax-"}},
	{Name: "openai-responses", New: provider(openairesponses.New), Protocol: "responses"},
	{Name: "openai-chat", New: provider(openaichat.New), Protocol: "chat"},
	{Name: "openai-chat-vllm-adapter", New: provider(openaichatvllmadapter.New), Protocol: "chat"},
	{Name: "openai-embedding", New: provider(openaiembedding.New), Protocol: "embeddings"},
	{Name: "ant-messages", New: provider(antmessages.New), Protocol: "messages"},
	{Name: "google-genai", New: provider(googlegenai.New), Protocol: "generateContent"},
	{Name: "mmsp", New: provider(mmspclient.New), Protocol: "mmsp"},
}

// aliases are other names of client types.
var aliases = map[string]string{"openai": "openai-chat"}

func provider[P mmsp.Provider](new func(mmsp.Options) (P, error)) func(mmsp.Options) (mmsp.Provider, error) {
	return func(o mmsp.Options) (mmsp.Provider, error) {
		p, err := new(o)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
}

// openAI makes the client of OpenAI's own endpoint, whose embedding models speak a protocol of their own.
func openAI(o mmsp.Options) (mmsp.Provider, error) {
	if strings.HasPrefix(strings.ToLower(o.Model), "text-embedding-") {
		return provider(openaiembedding.New)(o)
	}
	return provider(openaiofficial.New)(o)
}

// Types returns the table of client types.
func Types() []Type { return slices.Clone(types) }

// Names returns the names of the client types, the official ones first.
func Names() (names []string) {
	for _, t := range types {
		names = append(names, t.Name)
	}
	return names
}

// Accepted returns every name that a client type may be given by: the names and their aliases.
func Accepted() []string { return append(Names(), slices.Sorted(maps.Keys(aliases))...) }

func find(name string) (Type, bool) {
	name = strings.ToLower(name)
	if alias, ok := aliases[name]; ok {
		name = alias
	}
	i := slices.IndexFunc(types, func(t Type) bool { return t.Name == name })
	if i < 0 {
		return Type{}, false
	}
	return types[i], true
}

// Family returns the official client type whose family the model id belongs to, in any case. It is false for an id of no
// known family.
func Family(model string) (Type, bool) {
	model = strings.ToLower(model)
	for _, t := range types {
		if slices.ContainsFunc(t.Families, func(prefix string) bool { return strings.HasPrefix(model, prefix) }) {
			return t, true
		}
	}
	return Type{}, false
}

// Of returns the client type that New makes a model's client of.
func Of(model string, o mmsp.Options) (Type, bool) {
	if named := cmp.Or(o.ClientType, o.Env("CLIENT_TYPE")); named != "" {
		return find(named)
	}
	return Family(model)
}

// New makes the client of a model. The client type is Options.ClientType, else CLIENT_TYPE, else that of the model's
// family. A name that is no client type and an id of no known family are errors that list what is possible; a missing key
// or a bad base URL is one that names the variable or option. Nothing is sent yet.
func New(model string, o mmsp.Options) (*mmsp.Client, error) {
	o.Model = model
	named := o.ClientType
	if named == "" {
		named = o.Env("CLIENT_TYPE")
	}
	if named != "" {
		t, ok := find(named)
		if !ok {
			//lint:ignore ST1005 the text begins as every implementation of the protocol begins it
			return nil, fmt.Errorf("Unknown client type %q: %s", named, possible())
		}
		p, err := t.New(o)
		if err != nil {
			return nil, err
		}
		return mmsp.NewClient(p), nil
	}
	t, ok := Family(model)
	if !ok {
		return nil, fmt.Errorf("no client for the model %q: it belongs to no known family; give a client type: %s", model, possible())
	}
	p, err := t.New(o)
	if err != nil {
		return nil, err
	}
	return mmsp.NewClient(familyProvider{p, t.Name}), nil
}

// familyProvider lists only the models that the family rule would give the same client: nobody named the endpoint.
type familyProvider struct {
	mmsp.Provider
	name string
}

func (p familyProvider) Model() string {
	if m, ok := p.Provider.(interface{ Model() string }); ok {
		return m.Model()
	}
	return ""
}

func (p familyProvider) ListModels(ctx context.Context) ([]string, error) {
	ids, err := p.Provider.ListModels(ctx)
	return slices.DeleteFunc(ids, func(id string) bool {
		t, ok := Family(id)
		return !ok || t.Name != p.name
	}), err
}

// Embeds keeps what the provider says of its model, which the embedded interface hides.
func (p familyProvider) Embeds() bool { return mmsp.NewClient(p.Provider).Embeds() }

// CountTokens keeps the provider's counter, which the embedded interface hides.
func (p familyProvider) CountTokens(ctx context.Context, messages []mmsp.Message, config *mmsp.Config) (int64, error) {
	return mmsp.NewClient(p.Provider).CountTokens(ctx, messages, config)
}

func possible() string {
	var official, compatible []string
	for _, t := range types {
		if t.Vendor != "" {
			official = append(official, t.Name)
		} else {
			compatible = append(compatible, t.Name)
		}
	}
	return "official: " + strings.Join(official, ", ") + "; compatible: " + strings.Join(compatible, ", ")
}
