package upstream

import "context"

type betasKey struct{}

// WithBetas returns a context in which the clients of Anthropic's protocol ask for these betas of the API besides their own.
// Clients of other protocols do not look.
func WithBetas(ctx context.Context, betas []string) context.Context {
	if len(betas) == 0 {
		return ctx
	}
	return context.WithValue(ctx, betasKey{}, betas)
}

// Betas returns the betas of a context, nil where it has none.
func Betas(ctx context.Context) []string {
	betas, _ := ctx.Value(betasKey{}).([]string)
	return betas
}
