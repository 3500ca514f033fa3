package registry

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListHoldsEveryModelInOrder(t *testing.T) {
	models := List(USD)
	first := Model{
		ID: "gemini-3.8-flash", BaseURL: "https://generativelanguage.googleapis.com", ClientType: "google-official",
		Input: []Modality{Text, Image, Video, Audio}, Output: []Modality{Text}, ContextWindow: 1048576,
		Pricing: &Pricing{Currency: USD, Prompt: 1.5, Thoughts: 7.5, Response: 7.5, Cached: new(0.15)},
	}
	last := Model{
		ID: "Qwen/Qwen3-Embedding-8B", BaseURL: "https://api.siliconflow.cn/v1", ClientType: "openai-embedding",
		Input: []Modality{Text}, Output: []Modality{Embed},
	}
	if len(models) != 77 {
		t.Fatalf("%d models, want 77", len(models))
	}
	if diff := cmp.Diff([]Model{first, last}, []Model{models[0], models[76]}); diff != "" {
		t.Errorf("first and last (-want +got):\n%s", diff)
	}

	perEndpoint, perClient := map[string]int{}, map[string]int{}
	for _, model := range models {
		perEndpoint[model.BaseURL]++
		perClient[model.ClientType]++
	}
	if diff := cmp.Diff(map[string]int{
		"https://generativelanguage.googleapis.com": 11,
		"https://api.anthropic.com":                 8,
		"https://api.openai.com/v1":                 7,
		"https://api.minimax.io/v1":                 1,
		"https://api.z.ai/api/paas/v4/":             4,
		"https://api.moonshot.cn/v1":                2,
		"https://api.deepseek.com":                  4,
		"https://openrouter.ai/api/v1":              31,
		"https://api.siliconflow.cn/v1":             9,
	}, perEndpoint); diff != "" {
		t.Errorf("models per endpoint (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{
		"google-official": 11, "anthropic-official": 8, "openai-official": 7, "minimax-official": 1, "zai-official": 9,
		"moonshot-official": 5, "deepseek-official": 7, "openai-responses": 22, "openai-chat": 5, "openai-embedding": 2,
	}, perClient); diff != "" {
		t.Errorf("models per client type (-want +got):\n%s", diff)
	}
}

// none stands for a price that is not published.
const none = -1

func TestPricesInBothCurrencies(t *testing.T) {
	type prices struct{ Prompt, Cached, Response float64 }
	for _, test := range []struct {
		id       string
		usd, cny prices
	}{
		// Listed in CNY.
		{"kimi-k3", prices{2.857143, 0.285714, 14.285714}, prices{20, 2, 100}},
		{"kimi-k2.6", prices{0.928571, 0.157143, 3.857143}, prices{6.5, 1.1, 27}},
		{"deepseek-flash", prices{0.142857, 0.002857, 0.571429}, prices{1, 0.02, 4}},
		{"deepseek-v4-flash", prices{0.142857, 0.002857, 0.571429}, prices{1, 0.02, 4}},
		{"deepseek-v4-flash-vision-exp", prices{0.142857, 0.002857, 0.571429}, prices{1, 0.02, 4}},
		{"deepseek-v4-pro", prices{0.642857, 0.021429, 1.928571}, prices{4.5, 0.15, 13.5}},
		{"deepseek-ai/DeepSeek-V4-Flash", prices{0.142857, 0.002857, 0.285714}, prices{1, 0.02, 2}},
		{"deepseek-ai/DeepSeek-V4-Pro", prices{1.714286, 0.014286, 3.428571}, prices{12, 0.1, 24}},
		{"meituan-longcat/LongCat-2.0", prices{0.714286, 0.014286, 2.857143}, prices{5, 0.1, 20}},
		{"moonshotai/Kimi-K2.7-Code", prices{0.928571, 0.185714, 3.857143}, prices{6.5, 1.3, 27}},
		{"zai-org/GLM-5.2", prices{1.142857, 0.285714, 4}, prices{8, 2, 28}},
		// Listed in USD. The product of 0.0198 and 7 is not exact in binary: rounding must restore it.
		{"deepseek/deepseek-v4.1-flash", prices{0.0198, 0.0029, 0.396}, prices{0.1386, 0.0203, 2.772}},
		{"deepseek/deepseek-v4-pro", prices{0.435, 0.003625, 0.87}, prices{3.045, 0.025375, 6.09}},
		{"gpt-6-astra", prices{12.5, 1, 50}, prices{87.5, 7, 350}},
		{"text-embedding-3-large", prices{0.13, none, 0}, prices{0.91, none, 0}},
		{"nvidia/nemotron-3-ultra-550b-a55b:free", prices{0, none, 0}, prices{0, none, 0}},
		{"gemini-embedding-2", prices{none, none, none}, prices{none, none, none}},
	} {
		for currency, want := range map[Currency]prices{USD: test.usd, CNY: test.cny} {
			got := prices{none, none, none}
			for _, model := range List(currency) {
				if model.ID != test.id || model.Pricing == nil {
					continue
				}
				got.Prompt, got.Response = model.Pricing.Prompt, model.Pricing.Response
				if model.Pricing.Cached != nil {
					got.Cached = *model.Pricing.Cached
				}
				if model.Pricing.Currency != currency || model.Pricing.Thoughts != model.Pricing.Response {
					t.Errorf("%s: %+v is labelled wrongly or prices thoughts apart", test.id, *model.Pricing)
				}
			}
			if got != want {
				t.Errorf("%s in %s: got %v, want %v", test.id, currency, got, want)
			}
		}
	}
}

func TestListedInCNY(t *testing.T) {
	listed := 0
	for _, model := range declared() {
		if model.Pricing != nil && model.Pricing.Currency == CNY {
			listed++
		}
	}
	if listed != 11 {
		t.Errorf("%d models are listed in CNY, want 11", listed)
	}
}

func TestJSON(t *testing.T) {
	for id, want := range map[string]string{
		"kimi-k3": `{"model":"kimi-k3","base_url":"https://api.moonshot.cn/v1","client":"moonshot-official",` +
			`"input_modalities":["Text","Image"],"output_modalities":["Text"],"context_window":1048576,"pricing":` +
			`{"currency":"CNY","prompt_tokens":20,"thoughts_tokens":100,"response_tokens":100,"cached_tokens":2}}`,
		"text-embedding-3-large": `{"model":"text-embedding-3-large","base_url":"https://api.openai.com/v1",` +
			`"client":"openai-official","input_modalities":["Text"],"output_modalities":["Embed"],"pricing":` +
			`{"currency":"CNY","prompt_tokens":0.91,"thoughts_tokens":0,"response_tokens":0}}`,
		"Qwen/Qwen3.8-27B": `{"model":"Qwen/Qwen3.8-27B","base_url":"https://api.siliconflow.cn/v1",` +
			`"client":"openai-chat","input_modalities":["Text","Image"],"output_modalities":["Text"]}`,
	} {
		var got string
		for _, model := range List(CNY) {
			if model.ID == id {
				encoded, err := json.Marshal(model)
				if err != nil {
					t.Fatal(err)
				}
				got = string(encoded)
			}
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", id, got, want)
		}
	}
}

func TestListReturnsCopies(t *testing.T) {
	for _, currency := range []Currency{USD, CNY} {
		before, err := json.Marshal(List(currency)) // text, since a value could share memory with what is spoiled below
		if err != nil {
			t.Fatal(err)
		}
		spoiled := List(currency)
		for i := range spoiled {
			spoiled[i].ID, spoiled[i].Input[0], spoiled[i].Output[0] = "spoiled", "spoiled", "spoiled"
			if pricing := spoiled[i].Pricing; pricing != nil {
				pricing.Prompt = -1
				if pricing.Cached != nil {
					*pricing.Cached = -1
				}
			}
		}
		after, err := json.Marshal(List(currency))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(before), string(after)); diff != "" {
			t.Errorf("a caller changed the registry (-before +after):\n%s", diff)
		}
	}
}

func TestCurrencies(t *testing.T) {
	for name, known := range map[string]bool{"USD": true, "CNY": true, "EUR": false, "usd": false, "": false} {
		currency, err := ParseCurrency(name)
		if known != (err == nil) || known != (string(currency) == name && name != "") {
			t.Errorf("ParseCurrency(%q) = %q, %v", name, currency, err)
		}
		if got := List(Currency(name)); known != (got != nil) {
			t.Errorf("List(%q) has %d models", name, len(got))
		}
	}
}

func TestParseRefusals(t *testing.T) {
	const row = `{model: m, client: c, in: [Text], out: [Text]`
	for name, test := range map[string]struct{ yaml, want string }{
		"no rows":          {`[]`, "no models"},
		"unknown key":      {`[{base_url: u, models: [` + row + `, pirce: {}}]}]`, "pirce"},
		"no endpoint":      {`[{models: [` + row + `}]}]`, "base_url"},
		"no client":        {`[{base_url: u, models: [{model: m, in: [Text], out: [Text]}]}]`, "client"},
		"no modality":      {`[{base_url: u, models: [{model: m, client: c, in: [Text]}]}]`, "in and out"},
		"unknown modality": {`[{base_url: u, models: [{model: m, client: c, in: [Text], out: [Smell]}]}]`, "Smell"},
		"negative context": {`[{base_url: u, models: [` + row + `, context: -1}]}]`, "context"},
		"wordy context":    {`[{base_url: u, models: [` + row + `, context: 1M}]}]`, "1M"},
		"half a price":     {`[{base_url: u, models: [` + row + `, usd: {prompt: 1}}]}]`, "prompt and response"},
		"negative price":   {`[{base_url: u, models: [` + row + `, usd: {prompt: 1, response: -1}}]}]`, "finite"},
		"not a number":     {`[{base_url: u, models: [` + row + `, cny: {prompt: .nan, response: 1}}]}]`, "finite"},
		"two currencies": {
			`[{base_url: u, models: [` + row + `, usd: {prompt: 1, response: 1}, cny: {prompt: 7, response: 7}}]}]`,
			"exclude each other",
		},
		"the same model twice": {`[{base_url: u, models: [` + row + `}, ` + row + `}]}]`, "listed twice"},
	} {
		t.Run(name, func(t *testing.T) {
			models, err := parse([]byte(test.yaml))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v; want an error with %q", models, err, test.want)
			}
		})
	}
	if _, err := parse([]byte(`[{base_url: u, models: [` + row + `}]}]`)); err != nil {
		t.Errorf("the row that every case spoils is refused itself: %v", err)
	}
}
