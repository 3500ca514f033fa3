package credentials

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
)

const (
	keyCanary      = "canary-key-option"
	keyEnvCanary   = "canary-key-env"
	givenURL       = "https://given.example/v1"
	environmentURL = "https://environment.example/v1"
	defaultURL     = "https://default.example/v1"
)

func options(key, baseURL, envKey, envURL string) *mmsp.Options {
	return &mmsp.Options{
		APIKey: mmsp.NewSecret(key), BaseURL: baseURL,
		Getenv: func(name string) string {
			// A key that belongs to any other client would be taken from here.
			return map[string]string{"K": envKey, "U": envURL}[name]
		},
	}
}

func rule(r Rule) Rule {
	r.Class, r.KeyVar, r.URLVar, r.DefaultURL = "XClient", "K", "U", defaultURL+"/"
	return r
}

// A cell says what is there: option key k, option URL u, environment key K, environment URL U. An outcome says which
// key (k, K, or - for none) goes to which URL (u, U, or d for the default), or which error is raised.
func TestResolve(t *testing.T) {
	rules := []struct {
		name string
		rule Rule
	}{
		{"strict", rule(Rule{})},
		{"optional", rule(Rule{KeyOptional: true})},
		{"lenient", rule(Rule{Lenient: true})},
		{"open", rule(Rule{OpenServer: true, KeyOptional: true})},
	}
	table := []struct {
		cell     string
		outcomes [4]string // in the order of rules
	}{
		{"....", [4]string{"required", "-d", "required", "-d"}},
		{"...U", [4]string{"required", "-U", "required", "-U"}},
		{"..K.", [4]string{"Kd", "Kd", "Kd", "Kd"}},
		{"..KU", [4]string{"KU", "KU", "KU", "KU"}},
		{".u..", [4]string{"foreign", "foreign", "required", "-u"}},
		{".u.U", [4]string{"foreign", "foreign", "required", "-u"}},
		{".uK.", [4]string{"foreign", "foreign", "Ku", "-u"}},
		{".uKU", [4]string{"foreign", "foreign", "Ku", "-u"}},
		{"k...", [4]string{"kd", "kd", "kd", "kd"}},
		{"k..U", [4]string{"kU", "kU", "kU", "kU"}},
		{"k.K.", [4]string{"kd", "kd", "kd", "kd"}},
		{"k.KU", [4]string{"kU", "kU", "kU", "kU"}},
		{"ku..", [4]string{"ku", "ku", "ku", "ku"}},
		{"ku.U", [4]string{"ku", "ku", "ku", "ku"}},
		{"kuK.", [4]string{"ku", "ku", "ku", "ku"}},
		{"kuKU", [4]string{"ku", "ku", "ku", "ku"}},
	}
	values := map[byte]string{
		'k': keyCanary, 'u': givenURL, 'K': keyEnvCanary, 'U': environmentURL, 'd': defaultURL, '.': "", '-': "",
	}
	messages := map[string]string{
		"required": "K is required for XClient.",
		"foreign": "an api_key is required for XClient when a base_url is given: " +
			"K goes only to the endpoint the environment names",
	}
	for _, row := range table {
		for i, r := range rules {
			t.Run(row.cell+"/"+r.name, func(t *testing.T) {
				c, want := row.cell, row.outcomes[i]
				key, url, err := Resolve(options(values[c[0]], values[c[1]], values[c[2]], values[c[3]]), r.rule)
				if message, fails := messages[want]; fails {
					if err == nil || err.Error() != message || !key.IsZero() || url != "" {
						t.Fatalf("got key %v, URL %q, error %v; want error %q", key, url, err, message)
					}
					return
				}
				if err != nil || key.Reveal() != values[want[0]] || url != values[want[1]] {
					t.Fatalf("got key %q, URL %q, error %v; want %s", key.Reveal(), url, err, want)
				}
			})
		}
	}
}

func TestOnlyOwnVariablesAreRead(t *testing.T) {
	for _, baseURL := range []string{"", givenURL} {
		var read []string
		o := &mmsp.Options{BaseURL: baseURL, Getenv: func(name string) string { read = append(read, name); return "" }}
		_, _, _ = Resolve(o, rule(Rule{Lenient: true}))
		_, _, _ = Resolve(o, rule(Rule{OpenServer: true, KeyOptional: true}))
		if slices.ContainsFunc(read, func(name string) bool { return name != "K" && name != "U" }) {
			t.Errorf("base URL %q: read %v", baseURL, read)
		}
	}
}

func TestBaseURL(t *testing.T) {
	for _, c := range []struct{ in, out, err string }{
		{in: "https://h.example", out: "https://h.example"},
		{in: "https://h.example/v1//", out: "https://h.example/v1"},
		{in: "http://10.0.0.7:8000/v1/", out: "http://10.0.0.7:8000/v1"},
		{in: "http://[::1]:8000", out: "http://[::1]:8000"},
		{in: "HTTPS://h.example/V1", out: "HTTPS://h.example/V1"},
		{in: "bedrock://us-east-1", out: "bedrock://us-east-1"},
		{in: "bedrock://us-east-1/", out: "bedrock://us-east-1/"},
		{in: "bedrock://canary:canary@us-east-1", err: "must not carry a user name"},
		{in: "bedrock://", err: "names no host"},
		{in: "BEDROCK://us-east-1", err: "must be an http or https URL"},
		{in: "ftp://h.example", err: "must be an http or https URL"},
		{in: "file:///canary", err: "must be an http or https URL"},
		{in: "h.example/v1", err: "must be an http or https URL"},
		{in: "//h.example/v1", err: "must be an http or https URL"},
		{in: "https:h.example", err: "names no host"},
		{in: "https:///v1", err: "names no host"},
		{in: "https://:8000/v1", err: "names no host"},
		{in: "https://canary@h.example/v1", err: "must not carry a user name"},
		{in: "https://@h.example/v1", err: "must not carry a user name"},
		{in: "https://me:canary@h.example/v1", err: "must not carry a user name"},
		{in: "https://me:canary@h.example:port/v1", err: "is not a valid URL"},
		{in: "https://h.example/v1\n?canary", err: "is not a valid URL"},
		{in: "https://h.example/v1#canary", err: "must not have a query or fragment"},
		{in: "https://h.example/v1#", err: "must not have a query or fragment"},
		{in: "https://h.example/v1?key=canary", err: "must not have a query or fragment"},
	} {
		for from, o := range map[string]*mmsp.Options{
			"base_url": options("k", c.in, "", ""),
			"U":        options("k", "", "", c.in),
		} {
			key, url, err := Resolve(o, rule(Rule{}))
			switch {
			case c.err == "" && (err != nil || url != c.out || key.Reveal() != "k"):
				t.Errorf("%s %q: got %q, %v", from, c.in, url, err)
			case c.err != "" && (err == nil || !strings.HasPrefix(err.Error(), from+" for XClient "+c.err) || !key.IsZero()):
				t.Errorf("%s %q: got %q, %v; want error %q", from, c.in, url, err, c.err)
			case err != nil && strings.Contains(err.Error(), "canary"):
				t.Errorf("%s %q: the error shows the URL: %v", from, c.in, err)
			}
		}
	}
}

func TestKeyText(t *testing.T) {
	document := "{\n\t\"type\": \"canary\"\r\n}"
	for _, c := range []struct {
		key  string
		rule Rule
		ok   bool
	}{
		{"canary-ü ~", rule(Rule{}), true},
		{"canary\n", rule(Rule{}), false},
		{"canary\r\nx-other: 1", rule(Rule{}), false},
		{"canary\x00", rule(Rule{}), false},
		{"canary\x7f", rule(Rule{}), false},
		{"canary\u0085", rule(Rule{}), false},
		{document, rule(Rule{}), false},
		{document, rule(Rule{KeyDocument: true}), true},
		{document + "\x00", rule(Rule{KeyDocument: true}), false},
		{"canary\n", rule(Rule{KeyDocument: true}), false},
	} {
		for from, o := range map[string]*mmsp.Options{
			"api_key": options(c.key, "", "", ""),
			"K":       options("", "", c.key, ""),
		} {
			key, _, err := Resolve(o, c.rule)
			if c.ok && (err != nil || key.Reveal() != c.key) {
				t.Errorf("%s %q: %v", from, c.key, err)
			}
			if !c.ok && (err == nil || !strings.HasPrefix(err.Error(), from+" ") || !key.IsZero()) {
				t.Errorf("%s %q: got %v", from, c.key, err)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: the error shows the key: %v", from, err)
			}
		}
	}
}

// Whatever fails, and however a result is printed, no key is seen.
func TestNoKeyIsPrinted(t *testing.T) {
	for _, r := range []Rule{rule(Rule{}), rule(Rule{Lenient: true}), rule(Rule{OpenServer: true, KeyOptional: true})} {
		for _, baseURL := range []string{"", givenURL, "ftp://me:canary@h", "%zz://canary", "https://canary@h/"} {
			for _, key := range []string{"", keyCanary, keyCanary + "\n"} {
				o := options(key, baseURL, keyEnvCanary, "")
				got, _, err := Resolve(o, r)
				inJSON, _ := json.Marshal(got)
				if all := fmt.Sprintf("%v %+v %#v %s %v", got, got, got, inJSON, err); strings.Contains(all, "canary") {
					t.Errorf("base URL %q, key %q: %s", baseURL, key, all)
				}
			}
		}
	}
}
