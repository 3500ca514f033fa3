package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/fetch"
)

// Bounds of the files that one request names by URL, beside those of each.
const (
	maxFiles  = 20
	filesTime = time.Minute
)

// files fetches what one request names by URL.
type files struct {
	fetcher *fetch.Fetcher
	limit   int64 // bytes of all files: as many as a body may have
	until   time.Time

	count int
	bytes int64
}

func (c *call) files() *files {
	return &files{fetcher: c.state.fetcher, limit: c.state.config.Limits.MaxBodyBytes, until: time.Now().Add(filesTime)}
}

// fetch is what ingress.Env asks for.
func (f *files) fetch(ctx context.Context, path, url string) (*ingress.File, error) {
	if f.count++; f.count > maxFiles {
		return nil, ingress.Invalid(path, fmt.Sprintf("at most %d files are fetched for a request", maxFiles))
	}
	limited, cancel := context.WithDeadline(ctx, f.until)
	defer cancel()
	data, mediaType, name, err := f.fetcher.File(limited, url)
	f.bytes += int64(len(data))
	switch {
	case ctx.Err() != nil: // the caller is gone, or the server shuts down
		return nil, context.Cause(ctx)
	case limited.Err() != nil && err != nil:
		return nil, ingress.Invalid(path, fmt.Sprintf("the files of the request did not come within %v", filesTime))
	case err != nil:
		return nil, ingress.Invalid(path, err.Error())
	case f.bytes > f.limit:
		return nil, ingress.Invalid(path, fmt.Sprintf("the files of the request are larger than %d bytes together", f.limit))
	}
	return &ingress.File{Data: data, MediaType: mediaType, Name: name}, nil
}
