// Package sdk drives the gateway with the vendors' own Go SDKs. The matrix of what is tried and what holds is shared
// with the Node suite: ../matrix.json.
package sdk

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// gateway is where the gateway is, without a path, and the key it takes.
var gateway, key = os.Getenv("MMSP_SDK_URL"), os.Getenv("MMSP_SDK_KEY")

var matrix struct {
	Egresses []egress
	SDKs     []struct {
		ID, Suite string
		Calls     []string
	}
	Checks []struct {
		Check, SDK, Suite string
		Egresses          []string
	}
	Tools   map[string]tool
	Picture struct {
		MediaType string
		Base64    string
	}
	Scenarios  map[string]json.RawMessage
	Exceptions []json.RawMessage
}

type egress struct {
	ID, Hop    string
	PassesOver []string // of a request, always
}

type tool struct {
	Description string
	Result      string
	Parameters  map[string]any
}

// expectation is a scenario: what is said and what holds.
type expectation struct {
	Prompt   string
	Says     []string
	Thinks   string
	Finish   string
	Tools    []string
	Then     string
	ThenSays []string
	Schema   map[string]any
	Value    any
	Status   int
	Refused  int
	Whole    bool
	Dropped  []string
}

// expected returns what holds for a scenario: its own words, and over them those of the exceptions that apply.
func expected(t *testing.T, sdk, egress, scenario string) expectation {
	t.Helper()
	var e expectation
	over := func(words json.RawMessage) {
		if err := json.Unmarshal(words, &e); err != nil {
			t.Fatal(err)
		}
	}
	over(matrix.Scenarios[scenario])
	for _, words := range matrix.Exceptions {
		var where struct {
			Scenario    string
			SDK, Egress []string
		}
		if err := json.Unmarshal(words, &where); err != nil {
			t.Fatal(err)
		}
		applies := func(list []string, id string) bool { return list == nil || slices.Contains(list, id) }
		if where.Scenario == scenario && applies(where.SDK, sdk) && applies(where.Egress, egress) {
			over(words)
		}
	}
	return e
}

func TestMain(m *testing.M) {
	text, err := os.ReadFile("../matrix.json")
	if err == nil {
		err = json.Unmarshal(text, &matrix)
	}
	if err != nil {
		panic(err)
	}
	if gateway == "" || key == "" {
		panic("MMSP_SDK_URL and MMSP_SDK_KEY say where the gateway is; test/sdk/run sets them")
	}
	http.DefaultTransport = &watch{http.DefaultTransport} // which the SDKs use
	os.Exit(m.Run())
}

var results sync.Mutex

// record writes down how a test went once it is over.
func record(t *testing.T, sdk, egress, name string) {
	t.Cleanup(func() {
		file := os.Getenv("MMSP_SDK_RESULTS")
		if file == "" {
			return
		}
		outcome := "pass"
		if t.Failed() {
			outcome = "fail"
		}
		line, _ := json.Marshal(map[string]string{"sdk": sdk, "egress": egress, "test": name, "outcome": outcome})
		results.Lock()
		defer results.Unlock()
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		if _, err := f.Write(append(line, '\n')); err != nil {
			t.Error(err)
		}
	})
}

var drivers = map[string]driver{
	"openai-go, Responses":        openaiResponses{},
	"openai-go, Chat Completions": openaiChat{},
	"anthropic-sdk-go":            anthropicMessages{},
	"genai-go":                    genaiContents{},
}

// TestMatrix plays every scenario with every SDK on every egress.
func TestMatrix(t *testing.T) {
	for _, sdk := range matrix.SDKs {
		if sdk.Suite != "go" {
			continue
		}
		for _, egress := range matrix.Egresses {
			for scenario := range matrix.Scenarios {
				ways := sdk.Calls[:1]
				if calling := scenario == "one call" || scenario == "parallel calls"; calling {
					ways = sdk.Calls
				}
				for _, way := range ways {
					name := scenario
					if scenario == "one call" || scenario == "parallel calls" {
						name += ": " + way
					}
					t.Run(sdk.ID+"|"+egress.ID+"|"+name, func(t *testing.T) {
						t.Parallel()
						record(t, sdk.ID, egress.ID, name)
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						play(ctx, t, drivers[sdk.ID], expected(t, sdk.ID, egress.ID, scenario), scenario, egress, way)
					})
				}
			}
		}
	}
}
