package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/prism-shadow/mmsp-go"
)

// options are those of a binary that has everything, in an environment of four variables.
func options() LoadOptions {
	env := map[string]string{"UP_KEY": "k-up", "UP_URL": "https://up.example/v1", "TYPE": "Openai-Chat", "EMPTY": "", "PG": "postgres://u:p@db/x"}
	return LoadOptions{
		Getenv:      func(name string) string { return env[name] },
		ClientTypes: []string{"anthropic-official", "openai-chat", "openai-official", "mmsp"},
		Features: Features{
			Endpoints: []string{"responses", "chatCompletions", "messages", "generateContent", "embeddings"},
			Store:     true, Trace: true, Sessions: true,
		},
	}
}

// row is the models table that the samples about something else start with: lines 1 and 2.
const row = "models:\n- {server_model_id: a, model_id: m, api_key: k}\n"

const everything = `
listen: {host: 0.0.0.0, port: 8080}
models:
  - server_model_id: $claude
    model_id: ${sonnet}
    client_type: $TYPE
    base_url: ${UP_URL}
    api_key: $UP_KEY
    headers: {X-Title: my-app, X-Key: $UP_KEY, X-Price: $$5}
    strict: true
  - {server_model_id: relay, model_id: far, client_type: mmsp, base_url: http://10.0.0.2:25752/v1}
  - {server_model_id: plain, model_id: gpt, api_key: $$k, client_type: null, base_url: ""}
api_keys: [$UP_KEY, second]
allow_open: true
gateway:
  http:
    endpoints:
      responses: {enabled: true}
      chatCompletions: {enabled: true}
      messages: {enabled: true}
      generateContent: {enabled: true}
      embeddings: {enabled: true}
    fetch: {allow_private: true, max_bytes: 1}
  upstream: {max_retries: 0, max_retry_wait: 0, connect_timeout: 1.5, header_timeout: 90, idle_timeout: 1h30m}
  limits: {max_body_bytes: 2, max_depth: 3, max_sse_line_bytes: 4, max_response_bytes: 5}
  sessions: {route_by_user: true, concurrency: reject}
  keep_alive: 500ms
  data_dir: /var/lib/mmsp
metrics: {file: m.json}
store: {url: $PG, max_age: 24h, max_bytes: 6}
trace: {mode: on_error}
`

const spelledOut = `
listen: {host: 127.0.0.1, port: 25752}    # flags win
api_keys: [$UP_KEY]
allow_open: false
gateway:
  http:
    endpoints:
      responses:       {enabled: false}
      chatCompletions: {enabled: false}
      messages:        {enabled: false}
      generateContent: {enabled: false}
      embeddings:      {enabled: false}
    fetch:
      allow_private: false
      max_bytes: 20971520
  upstream:
    max_retries: 2
    max_retry_wait: 2s
    connect_timeout: 10s
    header_timeout: 120s
    idle_timeout: 300s
  limits:
    max_body_bytes: 52428800
    max_depth: 512
    max_sse_line_bytes: 67108864
    max_response_bytes: 536870912
  sessions: {route_by_user: false, concurrency: queue}
  keep_alive: 15s
  data_dir: ./mmsp-data
metrics: {file: ""}
store: {url: "", max_age: 168h, max_bytes: 1073741824}
trace: {mode: off}
`

func TestEverything(t *testing.T) {
	secret := mmsp.NewSecret
	want := &Config{
		Listen: Listen{"0.0.0.0", 8080},
		Models: []Model{
			{
				ServerModelID: "$claude", ModelID: "${sonnet}", ClientType: "openai-chat", BaseURL: "https://up.example/v1", APIKey: secret("k-up"),
				Headers: map[string]mmsp.Secret{"X-Title": secret("my-app"), "X-Key": secret("k-up"), "X-Price": secret("$5")}, Strict: true, Line: 4,
			},
			{ServerModelID: "relay", ModelID: "far", ClientType: "mmsp", BaseURL: "http://10.0.0.2:25752/v1", Line: 11},
			{ServerModelID: "plain", ModelID: "gpt", APIKey: secret("$k"), Line: 12},
		},
		APIKeys:   []mmsp.Secret{secret("k-up"), secret("second")},
		AllowOpen: true,
		Gateway: Gateway{
			HTTP: HTTP{Endpoints{Endpoint{true}, Endpoint{true}, Endpoint{true}, Endpoint{true}, Endpoint{true}}, Fetch{true, 1}},
			Upstream: Upstream{
				ConnectTimeout: 1500 * time.Millisecond, HeaderTimeout: 90 * time.Second, IdleTimeout: 90 * time.Minute,
			},
			Limits: Limits{2, 3, 4, 5}, Sessions: Sessions{true, "reject"}, KeepAlive: 500 * time.Millisecond, DataDir: "/var/lib/mmsp",
		},
		Metrics: Metrics{"m.json"}, Store: Store{secret("postgres://u:p@db/x"), 24 * time.Hour, 6}, Trace: Trace{"on_error"},
		Warnings: []string{"f:19: gateway.http.endpoints.chatCompletions: Chat Completions is the legacy layer, prefer responses where the caller can choose"},
	}
	got, err := Parse("f", []byte(everything), options())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}

	// The same file as JSON says the same, but for its lines.
	var tree any
	if err := yaml.Unmarshal([]byte(everything), &tree); err != nil {
		t.Fatal(err)
	}
	asJSON, _ := json.MarshalIndent(tree, "", "\t")
	if got, err = Parse("f", asJSON, options()); err != nil {
		t.Fatal(err)
	}
	for i := range got.Models {
		got.Models[i].Line = want.Models[i].Line
	}
	got.Warnings = want.Warnings
	if !reflect.DeepEqual(got, want) {
		t.Errorf("as JSON: got %+v\nwant %+v", got, want)
	}
}

var good = []struct {
	name, file string
	change     func(*Config) // from Defaults and the row; nil: that is not what the case is about
}{
	{"defaults", row, func(*Config) {}},
	{"null and empty are absent", row + "listen: {host: '', port: ~}\napi_keys:\nallow_open: null\ngateway:\n  http:\n  sessions: {concurrency: ''}\nmetrics: ~\nstore: {url: ''}\ntrace:\n", func(*Config) {}},
	{"top-level listen", row + "host: '::1'\nport: 0", func(c *Config) { c.Listen = Listen{"::1", 0} }},
	{"listen wins", row + "port: 1\nlisten: {port: 2}\nhost: localhost", func(c *Config) { c.Listen = Listen{"localhost", 2} }},
	{"open elsewhere when allowed", row + "host: 0.0.0.0\nallow_open: true", func(c *Config) { c.Listen.Host, c.AllowOpen = "0.0.0.0", true }},
	{"numbers as YAML has them", row + "gateway: {limits: {max_body_bytes: 1_000, max_depth: 0x10}}", func(c *Config) { c.Limits.MaxBodyBytes, c.Limits.MaxDepth = 1000, 16 }},
	{"byte order mark", "\ufeff" + row, func(*Config) {}},
	{"JSON escapes", `{"models":[{"server_model_id":"\ud83d\ude00\/\\\/\ud83d","model_id":"\\ud83d\u00e9\n","api_key":"k"}]}`, func(c *Config) {
		c.Models[0].ServerModelID, c.Models[0].ModelID, c.Models[0].Line = "😀/\\/\ufffd", "\\ud83dé\n", 1
	}},
	{"every default spelled out", row + spelledOut, func(c *Config) { c.APIKeys = []mmsp.Secret{mmsp.NewSecret("k-up")} }},
	{"everything", everything, nil},
}

func TestGood(t *testing.T) {
	for _, c := range good {
		got, err := Parse("f", []byte(c.file), options())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.change == nil {
			continue
		}
		want := Defaults()
		want.Models = []Model{{ServerModelID: "a", ModelID: "m", APIKey: mmsp.NewSecret("k"), Line: 2}}
		c.change(&want)
		if !reflect.DeepEqual(got, &want) {
			t.Errorf("%s: got  %+v\nwant %+v", c.name, got, want)
		}
	}
}

// bad samples and everything that is said about them. Those marked blind are beyond what a JSON Schema can see.
var bad = []struct {
	name, file string
	blind      bool
	want       string
}{
	{"no file", "", false, "f:1: is empty"},
	{"comments only", "# nothing\n---\n", false, "f:1: is empty"},
	{"not a mapping", "\n- a", false, "f:2: must be a mapping, not a list"},
	{"no models", "port: 1", false, "f:1: models: needs at least one row"},
	{"null models", "port: 1\nmodels: ~", false, "f:2: models: needs at least one row"},
	{"empty models", "port: 1\nmodels: []", false, "f:2: models: needs at least one row"},
	{"models of a wrong type", "models: {a: b}", false, "f:1: models: must be a list, not a mapping"},
	{"rows of a wrong type", "models:\n- text\n-\n- {server_model_id: a, model_id: m, api_key: k}", false, "f:2: models[0]: must be a mapping, not text\nf:3: models[1]: must be a mapping, not null"},
	{"missing columns", "models:\n- {}\n- server_model_id: b\n  model_id: ''\n  api_key: ~\n- client_type: MMSP\n  model_id: m", false, `
f:2: models[0].server_model_id: is missing
f:2: models[0].model_id: is missing
f:2: models[0].api_key: is missing: only a row of client_type mmsp may leave it out
f:4: models[1].model_id 'b': is missing
f:5: models[1].api_key 'b': is missing: only a row of client_type mmsp may leave it out
f:6: models[2].server_model_id: is missing`},
	{"columns of a wrong type", "models:\n- server_model_id: 4\n  model_id: [m]\n  api_key: {k: v}\n  client_type: true\n  base_url: 1.5\n  headers: x\n  strict: 'yes'", false, `
f:2: models[0].server_model_id: must be text, not a whole number (put it in quotes)
f:3: models[0].model_id: must be text, not a list
f:4: models[0].api_key: must be text, not a mapping
f:5: models[0].client_type: must be text, not true or false (put it in quotes)
f:6: models[0].base_url: must be text, not a fraction or a number too large (put it in quotes)
f:7: models[0].headers: must be a mapping, not text
f:8: models[0].strict: must be true or false, not text`},
	{
		"one served id twice", "models:\n- {server_model_id: a, model_id: m, api_key: k}\n- {server_model_id: b, model_id: m, api_key: k}\n- model_id: m\n  server_model_id: a\n  api_key: k", true,
		"f:5: models[2].server_model_id 'a': is already the id of models[0], line 2",
	},
	{"unknown client type", "models:\n- {server_model_id: a, model_id: m, api_key: k, client_type: openai-chatt}\n- {server_model_id: b, model_id: m, api_key: k, client_type: $UP_KEY}", true, `
f:2: models[0].client_type 'a': unknown client type "openai-chatt", did you mean openai-chat? (known: anthropic-official, openai-chat, openai-official, mmsp)
f:3: models[1].client_type 'b': unknown client type "$UP_KEY" (known: anthropic-official, openai-chat, openai-official, mmsp)`},
	{"references", `models:
- server_model_id: a
  model_id: $NOBODY
  api_key: ${NOBODY}
  client_type: $EMPTY
  base_url: $nobody
  headers:
    X-A: $NOBODY
    X-B: $nobody
api_keys:
- $NOBODY
- ""
- $
- ${UP_KEY
- $UP_KEY/x
store: {url: $NOBODY}`, true, `
f:4: models[0].api_key 'a': the environment variable NOBODY is not set, or empty
f:5: models[0].client_type 'a': the environment variable EMPTY is not set, or empty
f:6: models[0].base_url 'a': the environment variable nobody is not set, or empty
f:8: models[0].headers.X-A 'a': the environment variable NOBODY is not set, or empty
f:9: models[0].headers.X-B 'a': the environment variable it names is not set, or empty
f:11: api_keys[0]: the environment variable NOBODY is not set, or empty
f:12: api_keys[1]: must not be empty
f:13: api_keys[2]: must be a whole reference, $NAME or ${NAME} (write $$ for a dollar)
f:14: api_keys[3]: must be a whole reference, $NAME or ${NAME} (write $$ for a dollar)
f:15: api_keys[4]: must be a whole reference, $NAME or ${NAME} (write $$ for a dollar)
f:16: store.url: the environment variable NOBODY is not set, or empty`},
	{"headers", "models:\n- server_model_id: a\n  model_id: m\n  api_key: k\n  headers:\n    X-A: 1\n    X-B: ~\n    X C: c\n    x-d: d\n    X-D: d\n    X-E: \"e\\r\\nX-F: f\"\n    X-G: ''", false, `
f:6: models[0].headers.X-A 'a': must be text, not a whole number (put it in quotes)
f:7: models[0].headers.X-B 'a': must be text, not null
f:8: models[0].headers.X… 'a': is not a header name
f:10: models[0].headers.X-D 'a': the same header stands here already, spelled otherwise
f:11: models[0].headers.X-E 'a': must not hold control characters
f:12: models[0].headers.X-G 'a': must not be empty`},
	{"unknown keys", "Models: []\n" + row + "apikeys: [x]\nlisten: {prot: 1}\ngateway:\n  http: {endpoints: {chat_completions: {enable: true}}}\n  zzz: {port: 1}\n", false, `
f:1: Models: unknown key, did you mean models?
f:4: apikeys: unknown key, did you mean api_keys?
f:5: listen.prot: unknown key
f:7: gateway.http.endpoints.chat_completions: unknown key, did you mean chatCompletions?
f:8: gateway.zzz: unknown key`},
	{"unknown column", "models:\n- server_model_id: a\n  model_id: m\n  apiKey: k\n  1: x\n  [a]: b", false, `
f:2: models[0].api_key 'a': is missing: only a row of client_type mmsp may leave it out
f:4: models[0].apiKey 'a': unknown key, did you mean api_key?
f:5: models[0].1 'a': unknown key
f:6: models[0] 'a': a key must be plain text`},
	{"duplicate keys", row + "port: 1\nport: 2\ngateway: {limits: {max_depth: 1,\n  max_depth: 2}}\nmodels: []", true, `
f:4: port: duplicate key, it stands on line 3 already
f:6: gateway.limits.max_depth: duplicate key, it stands on line 5 already
f:7: models: duplicate key, it stands on line 1 already`},
	{"durations", row + "gateway:\n  keep_alive: soon\n  upstream:\n    max_retry_wait: -1\n    connect_timeout: 0s\n    header_timeout: [1]\n    idle_timeout: 12\n" +
		"store:\n  max_age: '3'\n", false, `
f:4: gateway.keep_alive: must be a duration such as 500ms, 2s or 168h, or a number of seconds
f:6: gateway.upstream.max_retry_wait: must not be negative
f:7: gateway.upstream.connect_timeout: must be longer than 0
f:8: gateway.upstream.header_timeout: must be a duration such as 500ms, 2s or 168h, or a number of seconds
f:11: store.max_age: must be a duration such as 500ms, 2s or 168h, or a number of seconds`},
	{"durations out of range", row + "gateway:\n  keep_alive: .nan\n  upstream:\n    max_retry_wait: 1e300\n    connect_timeout: 9999999999999h", true, `
f:4: gateway.keep_alive: must be a duration such as 500ms, 2s or 168h, or a number of seconds
f:6: gateway.upstream.max_retry_wait: must be a duration such as 500ms, 2s or 168h, or a number of seconds
f:7: gateway.upstream.connect_timeout: must be a duration such as 500ms, 2s or 168h, or a number of seconds`},
	{"numbers", row + "port: 65536\nlisten: {port: -1}\ngateway:\n  upstream: {max_retries: -1}\n  http: {fetch: {max_bytes: 20MB}}\n  limits:\n    max_body_bytes: 0\n    max_depth: 1.5\n" +
		"    max_sse_line_bytes: 99999999999999999999\n    max_response_bytes: 18446744073709551615\nstore: {max_bytes: -5}", false, `
f:3: port: must be between 0 and 65535
f:4: listen.port: must be between 0 and 65535
f:6: gateway.upstream.max_retries: must be at least 0
f:7: gateway.http.fetch.max_bytes: must be a whole number, not text
f:9: gateway.limits.max_body_bytes: must be at least 1
f:10: gateway.limits.max_depth: must be a whole number, not a fraction or a number too large
f:11: gateway.limits.max_sse_line_bytes: must be a whole number, not a fraction or a number too large
f:12: gateway.limits.max_response_bytes: is too large
f:13: store.max_bytes: must be at least 1`},
	{"words", row + "gateway: {sessions: {concurrency: wait}}\ntrace: {mode: Off}\nstore: {url: mysql://db}", false, `
f:3: gateway.sessions.concurrency: must be one of queue, reject
f:4: trace.mode: must be one of off, on_error, all
f:5: store.url: must start with postgres://, or be empty for SQLite in the data directory`},
	{"open server", row + "listen:\n  host: 0.0.0.0", true, "f:4: api_keys: is empty, which opens the server to everybody on 0.0.0.0: name a key, or set allow_open"},
	{"open server with an empty list", row + "host: example.org\napi_keys: []", true, "f:4: api_keys: is empty, which opens the server to everybody on example.org: name a key, or set allow_open"},
	{"aliases", "models: &all\n- &r {server_model_id: a, model_id: m, api_key: k}\n- *r\n- {<<: *r, server_model_id: c}\napi_keys: *all", true, `
f:1: models: anchors and aliases are not accepted, write the value out
f:2: models[0] 'a': anchors and aliases are not accepted, write the value out
f:3: models[1]: anchors and aliases are not accepted, write the value out
f:4: models[2].… 'c': unknown key
f:4: models[2].model_id 'c': is missing
f:4: models[2].api_key 'c': is missing: only a row of client_type mmsp may leave it out
f:5: api_keys: anchors and aliases are not accepted, write the value out`},
	{"anchors", "&root\n&key models: [{server_model_id: a, model_id: m, api_key: k}]\nhost: &h\nport: &p 1", true, `
f:1: anchors and aliases are not accepted, write the value out
f:1: models: needs at least one row
f:2: a key must be plain text
f:3: host: anchors and aliases are not accepted, write the value out
f:3: host: must be text, not null
f:4: port: anchors and aliases are not accepted, write the value out`},
	{"unfit for a message", "models:\n- server_model_id: \"a\\nb\\u202e\"\n- server_model_id: " + strings.Repeat("x", 70), false, `
f:2: models[0].model_id 'a?b?': is missing
f:2: models[0].api_key 'a?b?': is missing: only a row of client_type mmsp may leave it out
f:3: models[1].model_id '` + strings.Repeat("x", 64) + `…': is missing
f:3: models[1].api_key '` + strings.Repeat("x", 64) + `…': is missing: only a row of client_type mmsp may leave it out`},
	{"unknown anchor", row + "api_keys:\n- *x", true, "f:4: is neither YAML nor JSON: anchors and aliases are not accepted, write the value out"},
	{"two documents", row + "---\na: 1", true, "f:3: holds more than one YAML document"},
	{"not UTF-8", "a: 1\nb: \xff", true, "f:2: holds bytes that are not UTF-8 text"},
	{"control character", "a: 1\nb: \u0085", true, "f:2: holds bytes that are not UTF-8 text"},
	{"binary", "a: 1\n\nb: \x00", true, "f:3: holds bytes that are not UTF-8 text"},
	{"broken JSON", "{ this is not a configuration", true, "f:1: is neither YAML nor JSON: did not find expected ',' or '}'"},
	{"broken list", "a: 1\nb: [1,\nc: 2\n", true, "f:2: is neither YAML nor JSON: did not find expected ',' or ']'"},
	{"broken indentation", "a: 1\nb:\n  - x\n y: 2\nz: 1\n", true, "f:4: is neither YAML nor JSON: did not find expected key"},
	{"broken value", "a: 1\nb: c: d\n", true, "f:2: is neither YAML nor JSON: mapping values are not allowed in this context"},
}

func TestBad(t *testing.T) {
	for _, c := range bad {
		cfg, err := Parse("f", []byte(c.file), options())
		if cfg != nil || err == nil {
			t.Errorf("%s: loads", c.name)
		} else if want := strings.TrimSpace(c.want); err.Error() != want {
			t.Errorf("%s:\n%v\nwant:\n%s", c.name, err, want)
		}
	}
}

func TestManyProblems(t *testing.T) {
	_, err := Parse("f", []byte("models: []\n"+strings.Repeat("{}: x\n", 150)), options())
	bad, ok := errors.AsType[*Error](err)
	if !ok || len(bad.Problems) != maxProblems+1 || bad.Problems[maxProblems].Message != "51 more problems" {
		t.Errorf("got %v", err)
	}
}

func TestOpenServer(t *testing.T) {
	for _, c := range []struct {
		file, flag string
		open       bool
	}{
		{"", "", true},
		{"host: localhost", "", true},
		{"host: LocalHost", "", true},
		{"host: 127.8.9.1", "", true},
		{"host: '::1'", "", true},
		{"host: '::ffff:127.0.0.1'", "", true},
		{"host: 0.0.0.0", "", false},
		{"host: '::'", "", false},
		{"host: 10.0.0.1", "", false},
		{"host: 127.0.0.1.example.org", "", false},
		{"host: 127.1", "", false},
		{"host: 0.0.0.0", "127.0.0.1", true},
		{"host: 127.0.0.1", "0.0.0.0", false},
		{"host: 0.0.0.0\napi_keys: [k]", "", true},
		{"api_keys: [k]", "0.0.0.0", true},
		{"allow_open: true", "0.0.0.0", true},
		{"host: localhost\nlisten: {host: 0.0.0.0}", "", false},
	} {
		o := options()
		o.HostOverride = c.flag
		if _, err := Parse("f", []byte(row+c.file), o); (err == nil) != c.open {
			t.Errorf("%q with --host %q: %v", c.file, c.flag, err)
		}
	}
}

func TestWarnings(t *testing.T) {
	endpoints := "gateway:\n  http:\n    endpoints:\n      embeddings: {enabled: true}\n      chatCompletions: {enabled: true}\n      responses: {enabled: true}\n      messages: {enabled: false}\n"
	for _, c := range []struct {
		name, file string
		features   Features
		want       []string
	}{
		{"nothing asked for", "trace: {mode: off}\nstore: {max_age: 168h}\ngateway: {sessions: {concurrency: queue}}", Features{}, nil},
		{"endpoints", endpoints, Features{Endpoints: []string{"embeddings", "messages"}}, []string{
			"f:8: gateway.http.endpoints.responses: this version does not have the endpoint yet, it stays off",
			"f:7: gateway.http.endpoints.chatCompletions: this version does not have the endpoint yet, it stays off",
		}},
		{"the legacy layer", endpoints, Features{Endpoints: []string{"embeddings", "chatCompletions", "responses"}}, []string{
			"f:7: gateway.http.endpoints.chatCompletions: Chat Completions is the legacy layer, prefer responses where the caller can choose",
		}},
		{"sections", "trace: {mode: all}\nstore: {url: $PG}\ngateway:\n  sessions: {route_by_user: true}", Features{}, []string{
			"f:6: gateway.sessions: this version does not have sessions yet, the section does nothing",
			"f:4: store: this version does not have a store yet, the section does nothing",
			"f:3: trace: this version does not have tracing yet, the section does nothing",
		}},
		{"sections this version has", "trace: {mode: all}\nstore: {max_bytes: 5}\ngateway: {sessions: {concurrency: reject}}", Features{Store: true, Trace: true, Sessions: true}, nil},
	} {
		o := options()
		o.Features = c.features
		cfg, err := Parse("f", []byte(row+c.file), o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if !slices.Equal(cfg.Warnings, c.want) {
			t.Errorf("%s: got %q", c.name, cfg.Warnings)
		}
	}
}

// The canary stands where keys stand, in every way to get such a cell wrong; no message may repeat it.
func TestKeysNeverShown(t *testing.T) {
	const canary = "sk-canary0123456789"
	o := options()
	o.Getenv = func(name string) string {
		if name == "CANARY" {
			return canary
		}
		return ""
	}
	for _, file := range []string{
		"models: [{api_key: CELL}]",
		"models: [{api_key: [CELL]}]",
		"models: [{api_key: {CELL: CELL}}]",
		"models: [{api_key: {CELL: 1, CELL: 2}}]",
		"models: [{api_key: [{CELL: &CELL 1, a: *CELL}]}]",
		"models: [{api_key:CELL}]",
		"models: [{'api_key: CELL': 1}]",
		"models: [{api_key: *CELL}]",
		"models: [{api_key: &CELL x}]",
		"models: [{api_key: !CELL x}]",
		"models: [{api_key: !x!CELL x}]",
		"models: [{api_key: '$CELL'}]",
		"models: [{api_key: '${CELL'}]",
		"models: [{api_key: '$sk_canary0123456789'}]",
		"models: [{api_key: \"\\qCELL\"}]",
		"models: [{api_key: 'CELL]",
		"models: [{api_key: @CELL}]",
		"models: [{api_key: %CELL}]",
		"models:\n- api_key: CELL: CELL",
		"models:\n- api_key: CELL\n base_url: x",
		"models:\n- api_key: CELL\n\tbase_url: x",
		"models:\n- api_key:CELL",
		"models:\n- api_key: \"CELL\u0007\"",
		"models:\n- CELL",
		"models: CELL",
		"models: [{headers: {A: 'CELL', a: CELL, B: [CELL], C: {CELL: CELL}, D: \"CELL\\n\", E: '$CELL', F: $sk_canary0123456789, Auth:CELL, Auth Bearer CELL: x}}]",
		"models: [{headers: CELL}]",
		"models: [{headers: [CELL]}]",
		"models: [{client_type: $CANARY, base_url: $CANARY}]",
		"models: [{client_type: $CANARY, headers: {A: $CANARY, a: $CANARY}}]",
		"api_keys: CELL",
		"api_keys: {CELL}",
		"api_keys: {CELL: 1, CELL: 2}",
		"api_keys: [[CELL], {CELL: 1}, '$CELL', !!int CELL, !!binary CELL, !!null CELL, *CELL]",
		"api_keys: [[CELL], {CELL: 1}, '$CELL', !!int CELL, !!binary CELL, !!null CELL]",
		"store: {url: CELL}",
		"store: {url: $CANARY}",
		"store: {url: 'mysql://u:CELL@db'}",
	} {
		_, err := Parse("f", []byte(strings.ReplaceAll(file, "CELL", canary)), o)
		if err == nil {
			t.Errorf("%s: loads", file)
		} else if strings.Contains(err.Error(), "canary0123") {
			t.Errorf("%s: %v", file, err)
		}
	}

	cfg, err := Parse("f", []byte(strings.ReplaceAll(everything, "second", canary)), options())
	if err != nil {
		t.Fatal(err)
	}
	asJSON, _ := json.Marshal(cfg)
	for _, key := range []string{canary, "k-up", "u:p@", "my-app"} {
		if shown := fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, asJSON); strings.Contains(shown, key) {
			t.Errorf("a printed configuration shows %q", key)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"host", "port", "api_keys", "server_model_id", "model_id", "idle_timeout"}
	for word, want := range map[string]string{
		"hosts": "host", "Port": "port", "prot": "", "apikey": "api_keys", "API-KEYS": "api_keys", "servermodelid": "server_model_id",
		"serve_model_idd": "server_model_id", "modelID": "model_id", "idle_timeouts": "idle_timeout", "": "", "x": "", "zzzzzzzz": "",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("MMSP_TEST_KEY", "from-the-environment")
	cfg, err := Load(write("good.json", `{"models": [{"server_model_id": "a", "model_id": "m", "api_key": "$MMSP_TEST_KEY", "client_type": "anything"}]}`), LoadOptions{})
	if err != nil || cfg.Models[0].APIKey.Reveal() != "from-the-environment" {
		t.Errorf("got %+v, %v", cfg, err)
	}
	for path, want := range map[string]string{
		write("bad.yaml", "models: []"):                       "bad.yaml:1: models: needs at least one row",
		write("large.yaml", row+strings.Repeat("#\n", 2<<20)): "large.yaml: is larger than 4194304 bytes",
		filepath.Join(dir, "none.yaml"):                       "none.yaml: cannot be read: no such file or directory",
		dir + string(filepath.Separator) + ".":                ".: cannot be read: is a directory",
	} {
		_, err := Load(path, options())
		if _, ok := errors.AsType[*Error](err); !ok || err.Error() != dir+"/"+want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestSchema(t *testing.T) {
	schema := compileSchema(t)
	validate := func(file string) error {
		var tree any
		if err := yaml.Unmarshal([]byte(strings.TrimPrefix(file, "\ufeff")), &tree); err != nil {
			return err
		}
		return schema.Validate(tree)
	}
	for _, c := range good {
		if strings.HasPrefix(c.file, "{") {
			continue // about escapes
		}
		if err := validate(c.file); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, c := range bad {
		if !c.blind && validate(c.file) == nil {
			t.Errorf("%s: the schema accepts it", c.name)
		}
	}
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	tree, err := jsonschema.UnmarshalJSON(strings.NewReader(string(Schema)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", tree); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestSchemaMatchesStructs walks the structs and the schema side by side: same keys, types, bounds, words and defaults.
func TestSchemaMatchesStructs(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(Schema, &schema); err != nil {
		t.Fatal(err)
	}
	defs := schema["$defs"].(map[string]any)
	keys := 0
	var walk func(path string, node map[string]any, sections ...reflect.Value)
	walk = func(path string, node map[string]any, sections ...reflect.Value) {
		if node["additionalProperties"] != false {
			t.Errorf("%s: accepts unknown keys", path)
		}
		properties := node["properties"].(map[string]any)
		inStruct := map[string]bool{}
		for _, section := range sections {
			for f, value := range section.Fields() {
				name := f.Tag.Get("yaml")
				if name == "-" {
					continue
				}
				inStruct[name] = true
				at := join(path, name)
				property, ok := properties[name].(map[string]any)
				if !ok {
					t.Errorf("%s is not in the schema", at)
					continue
				}
				keys++
				isDuration := f.Type == reflect.TypeFor[time.Duration]()
				ref, _ := property["$ref"].(string)
				ref = strings.TrimPrefix(ref, "#/$defs/")
				if isDuration {
					if want := map[string]string{"": "duration", "1": "positiveDuration"}[f.Tag.Get("min")]; ref != want {
						t.Errorf("%s refers to %q, want %q", at, ref, want)
					}
				} else if ref != "" {
					property = defs[ref].(map[string]any)
				}

				switch {
				case f.Type.Kind() == reflect.Slice && f.Type.Elem() == reflect.TypeFor[Model]():
					walk(at, property["items"].(map[string]any), reflect.New(f.Type.Elem()).Elem())
					continue
				case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[mmsp.Secret]():
					walk(at, property, value)
					continue
				}

				want := map[reflect.Kind]string{
					reflect.String: "string", reflect.Struct: "string", reflect.Bool: "boolean", reflect.Int: "integer",
					reflect.Int64: "integer", reflect.Map: "object", reflect.Slice: "array",
				}[f.Type.Kind()]
				if enum := f.Tag.Get("enum"); enum != "" {
					if got := fmt.Sprint(property["enum"]); got != fmt.Sprintf("[%s  <nil>]", enum) {
						t.Errorf("%s: the schema has the words %s", at, got)
					}
				} else if types := fmt.Sprint(property["type"]); !isDuration && types != want && types != "["+want+" null]" {
					t.Errorf("%s: the schema has the type %s, want %s", at, types, want)
				}
				if want == "integer" && !isDuration {
					if minimum := cmp.Or(f.Tag.Get("min"), "0"); fmt.Sprint(property["minimum"]) != minimum {
						t.Errorf("%s: the schema has the minimum %v", at, property["minimum"])
					}
					if maximum, ok := property["maximum"]; ok != (f.Tag.Get("max") != "") || ok && fmt.Sprint(maximum) != f.Tag.Get("max") {
						t.Errorf("%s: the schema has the maximum %v", at, maximum)
					}
				}
				if got, ok := property["default"]; ok {
					if d, text := got.(string); isDuration && text {
						got, _ = time.ParseDuration(d)
					}
					if !isDuration && want == "integer" {
						got = int64(got.(float64))
					}
					current := value.Interface()
					if s, secret := current.(mmsp.Secret); secret {
						current = s.Reveal()
					}
					if fmt.Sprint(got) != fmt.Sprint(current) {
						t.Errorf("%s: the schema has the default %v, want %v", at, got, current)
					}
				} else if path != "models" && f.Type.Kind() != reflect.Slice && f.Type.Kind() != reflect.Map {
					t.Errorf("%s: the schema has no default", at)
				}
			}
		}
		for name := range properties {
			if !inStruct[name] {
				t.Errorf("%s is in the schema only", join(path, name))
			}
		}
	}
	defaults := Defaults()
	walk("", schema, reflect.ValueOf(defaults), reflect.ValueOf(defaults.Listen))
	if keys < 50 {
		t.Errorf("compared %d keys only", keys)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range good {
		f.Add([]byte(c.file))
	}
	for _, c := range bad {
		f.Add([]byte(c.file))
	}
	const canary = "sk-canary0123456789"
	o := options()
	o.Getenv = func(string) string { return canary }
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := Parse("f", data, o)
		if bad, ok := errors.AsType[*Error](err); (cfg == nil) != ok || ok && len(bad.Problems) == 0 {
			t.Fatalf("got %v, %v", cfg, err)
		}
		if err != nil && (strings.Contains(err.Error(), canary) || len(strings.Split(err.Error(), "\n")) > maxProblems+1) {
			t.Fatalf("got %v", err)
		}
	})
}
