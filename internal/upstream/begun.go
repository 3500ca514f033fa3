package upstream

import "context"

type begunKey struct{}

// WithBegun returns a context whose requests call begun when a provider has begun to stream: when its first event was no
// failure, and the reader waits for the next. It is called by the goroutine that reads.
func WithBegun(ctx context.Context, begun func()) context.Context {
	return context.WithValue(ctx, begunKey{}, begun)
}

// Begun tells whom the request's context names. Readers of events call it before they wait for what follows the first.
func (b *body) Begun() {
	if begun, ok := b.raw.ctx.Value(begunKey{}).(func()); ok {
		begun()
	}
}
