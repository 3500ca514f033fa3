package sdk

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	listModels = map[string]func(context.Context) ([]string, error){
		"openai-go": openaiModels, "anthropic-sdk-go": anthropicModels, "genai-go": genaiModels,
	}
	embed = map[string]func(ctx context.Context, model string, texts []string) ([][]float64, error){
		"openai-go": openaiEmbed, "genai-go": genaiEmbed,
	}
	count = map[string]func(ctx context.Context, model, text string) (int64, error){
		"anthropic-sdk-go": anthropicCount, "genai-go": genaiCount,
	}
)

// TestChecks tries what the SDKs can do besides conversing.
func TestChecks(t *testing.T) {
	for _, c := range matrix.Checks {
		if c.Suite != "go" {
			continue
		}
		if len(c.Egresses) == 0 {
			c.Egresses = []string{""}
		}
		if c.Egresses[0] == "*" {
			c.Egresses = nil
			for _, e := range matrix.Egresses {
				c.Egresses = append(c.Egresses, e.ID)
			}
		}
		for _, egress := range c.Egresses {
			t.Run(c.SDK+"|"+egress+"|"+c.Check, func(t *testing.T) {
				t.Parallel()
				record(t, c.SDK, egress, c.Check)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				switch c.Check {
				case "tour":
					checkTour(ctx, t, c.SDK)
				case "models":
					checkModels(ctx, t, c.SDK)
				case "embeddings":
					checkEmbeddings(ctx, t, c.SDK, egress)
				case "count tokens":
					checkCount(ctx, t, c.SDK, egress)
				default:
					t.Fatalf("no check %s", c.Check)
				}
			})
		}
	}
}

// checkTour leads one conversation through every egress and all the way back, with a tool task on each: whatever proofs a
// turn has, every other provider must be able to read it.
func checkTour(ctx context.Context, t *testing.T, sdk string) {
	way := ""
	for _, k := range matrix.SDKs {
		if k.ID == sdk {
			way = k.Calls[0]
		}
	}
	c := drivers[sdk].open("", way)
	var route []string
	for _, e := range matrix.Egresses {
		route = append(route, e.ID)
	}
	back := slices.Clone(route)
	slices.Reverse(back)
	for _, id := range append(route, back...) {
		c.use(id)
		if err := calling(ctx, c, expected(t, sdk, id, "one call")); err != nil {
			t.Fatal(id, err, drivers[sdk].fault(err).body)
		}
	}
}

func checkModels(ctx context.Context, t *testing.T, sdk string) {
	ids, err := listModels[sdk](ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range matrix.Egresses {
		if !slices.Contains(ids, e.ID) {
			t.Errorf("%s is not among %s", e.ID, ids)
		}
	}
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("a model stands twice: %s", ids)
	}
}

func checkEmbeddings(ctx context.Context, t *testing.T, sdk, egress string) {
	vectors, err := embed[sdk](ctx, egress, []string{"a green apple", "a red apple", "some railway station"})
	if err != nil {
		t.Fatal(err)
	}
	if len(vectors) != 3 {
		t.Fatalf("%d vectors", len(vectors))
	}
	dot := func(a, b []float64) (sum float64) {
		for i := range a {
			sum += a[i] * b[i]
		}
		return sum
	}
	for _, v := range vectors {
		if len(v) != 256 || math.Abs(dot(v, v)-1) > 1e-3 {
			t.Errorf("a vector of %d numbers, of a length whose square is %f", len(v), dot(v, v))
		}
	}
	if !t.Failed() && (dot(vectors[0], vectors[1]) < 0.4 || math.Abs(dot(vectors[0], vectors[2])) > 0.25) {
		t.Error("texts of the same words are not nearer")
	}
}

func checkCount(ctx context.Context, t *testing.T, sdk, egress string) {
	const text = "Greet the town of Oslo "
	one, err := count[sdk](ctx, egress, text)
	if err != nil {
		t.Fatal(err)
	}
	many, err := count[sdk](ctx, egress, strings.Repeat(text, 50))
	if err != nil {
		t.Fatal(err)
	}
	if one <= 0 || many <= one+150 {
		t.Errorf("%d tokens, and of fifty times the text %d", one, many)
	}
}
