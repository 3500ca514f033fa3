// Package registry lists the models that are supported out of the box: where each one is served, which client type
// speaks to it, what it takes and gives, and its list price. The data is models.yaml, which is meant to be edited by
// hand; this file only reads it.
package registry

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"go.yaml.in/yaml/v3"
)

// Model is one supported model at one endpoint. The same model may be listed at several endpoints under several ids.
type Model struct {
	ID            string     `json:"model"`
	BaseURL       string     `json:"base_url"`
	ClientType    string     `json:"client"` // as package auto names it
	Input         []Modality `json:"input_modalities"`
	Output        []Modality `json:"output_modalities"`
	ContextWindow int64      `json:"context_window,omitempty"` // tokens; 0: none is published
	Pricing       *Pricing   `json:"pricing,omitempty"`        // nil: no price is published
}

// Modality is a kind of content that a model reads or writes.
type Modality string

// The modalities of the registry.
const (
	Text  Modality = "Text"
	Image Modality = "Image"
	Video Modality = "Video"
	Audio Modality = "Audio"
	Embed Modality = "Embed" // an embedding vector
)

// Currency is the unit of the prices of a listing.
type Currency string

// The currencies of the registry.
const (
	USD Currency = "USD"
	CNY Currency = "CNY"
)

// Pricing holds list prices per million tokens.
type Pricing struct {
	Currency Currency `json:"currency"`
	Prompt   float64  `json:"prompt_tokens"`   // input not served from a cache
	Thoughts float64  `json:"thoughts_tokens"` // the same as Response
	Response float64  `json:"response_tokens"`
	Cached   *float64 `json:"cached_tokens,omitempty"` // nil: cached tokens have no price of their own
}

// cnyPerUSD is the fixed rate between the two currencies.
const cnyPerUSD = 7

// ParseCurrency reads the name of a currency, "USD" or "CNY".
func ParseCurrency(name string) (Currency, error) {
	switch currency := Currency(name); currency {
	case USD, CNY:
		return currency, nil
	default:
		return "", fmt.Errorf("unknown currency %q: want USD or CNY", name)
	}
}

// List returns every supported model in the registry's order, priced in one currency. A price that the vendor lists in
// that currency is returned as listed; any other is converted at 7 CNY to the dollar and rounded to six decimals.
// The result is the caller's own, down to the slices and pointers. It is nil for a currency that ParseCurrency refuses.
func List(currency Currency) []Model {
	if currency != USD && currency != CNY {
		return nil
	}
	models := slices.Clone(declared())
	for i := range models {
		model := &models[i]
		model.Input, model.Output = slices.Clone(model.Input), slices.Clone(model.Output)
		if model.Pricing == nil {
			continue
		}
		convert := func(price float64) float64 { return price }
		switch from := model.Pricing.Currency; {
		case from == USD && currency == CNY:
			convert = func(price float64) float64 { return math.Round(price*cnyPerUSD*1e6) / 1e6 }
		case from == CNY && currency == USD:
			convert = func(price float64) float64 { return math.Round(price/cnyPerUSD*1e6) / 1e6 }
		}
		pricing := &Pricing{
			Currency: currency,
			Prompt:   convert(model.Pricing.Prompt),
			Thoughts: convert(model.Pricing.Thoughts),
			Response: convert(model.Pricing.Response),
		}
		if model.Pricing.Cached != nil {
			pricing.Cached = new(convert(*model.Pricing.Cached))
		}
		model.Pricing = pricing
	}
	return models
}

//go:embed models.yaml
var modelsYAML []byte

// declared is the table as models.yaml has it, each price in the currency it is listed in. A file that does not parse is
// a mistake in the program, not in anything a user gave.
var declared = sync.OnceValue(func() []Model {
	models, err := parse(modelsYAML)
	if err != nil {
		panic(fmt.Sprintf("registry: models.yaml: %v", err))
	}
	return models
})

// parse reads and checks a table in the form of models.yaml.
func parse(data []byte) ([]Model, error) {
	type price struct {
		Prompt   *float64 `yaml:"prompt"`
		Cached   *float64 `yaml:"cached"`
		Response *float64 `yaml:"response"`
	}
	var endpoints []struct {
		BaseURL string `yaml:"base_url"`
		Models  []struct {
			Model   string     `yaml:"model"`
			Client  string     `yaml:"client"`
			In      []Modality `yaml:"in"`
			Out     []Modality `yaml:"out"`
			Context int64      `yaml:"context"`
			USD     *price     `yaml:"usd"`
			CNY     *price     `yaml:"cny"`
		} `yaml:"models"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&endpoints); err != nil {
		return nil, err
	}

	var models []Model
	for _, endpoint := range endpoints {
		for _, row := range endpoint.Models {
			fail := func(problem string) error {
				return fmt.Errorf("%q at %q: %s", row.Model, endpoint.BaseURL, problem)
			}
			if row.Model == "" || row.Client == "" || endpoint.BaseURL == "" {
				return nil, fail("model, client and base_url are required")
			}
			if len(row.In) == 0 || len(row.Out) == 0 {
				return nil, fail("in and out are required")
			}
			for _, modality := range slices.Concat(row.In, row.Out) {
				switch modality {
				case Text, Image, Video, Audio, Embed:
				default:
					return nil, fail("unknown modality " + string(modality))
				}
			}
			if row.Context < 0 {
				return nil, fail("context is negative")
			}
			model := Model{row.Model, endpoint.BaseURL, row.Client, row.In, row.Out, row.Context, nil}

			currency, listed := USD, row.USD
			if row.CNY != nil {
				if row.USD != nil {
					return nil, fail("usd and cny exclude each other")
				}
				currency, listed = CNY, row.CNY
			}
			if listed != nil {
				if listed.Prompt == nil || listed.Response == nil {
					return nil, fail("a price needs prompt and response")
				}
				for _, value := range []*float64{listed.Prompt, listed.Cached, listed.Response} {
					if value != nil && (*value < 0 || math.IsNaN(*value) || math.IsInf(*value, 0)) {
						return nil, fail("a price is not a finite, positive number or zero")
					}
				}
				model.Pricing = &Pricing{currency, *listed.Prompt, *listed.Response, *listed.Response, listed.Cached}
			}
			if slices.ContainsFunc(models, func(other Model) bool {
				return other.ID == model.ID && other.BaseURL == model.BaseURL
			}) {
				return nil, fail("listed twice")
			}
			models = append(models, model)
		}
	}
	if len(models) == 0 {
		return nil, errors.New("no models")
	}
	return models, nil
}
