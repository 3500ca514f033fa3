package sdk

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// watch collects what the gateway says, in a header, that the provider was not asked for: for each test by the context
// of its requests.
type watch struct{ http.RoundTripper }

type droppedKey struct{}

type dropped struct {
	mutex sync.Mutex
	names map[string]bool
}

func (w *watch) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(r)
	if d, ok := r.Context().Value(droppedKey{}).(*dropped); ok && err == nil {
		if names := response.Header.Get("X-Mmsp-Dropped"); names != "" {
			d.add(strings.Split(names, ", "))
		}
	}
	return response, err
}

func (d *dropped) add(names []string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.names == nil {
		d.names = map[string]bool{}
	}
	for _, name := range names {
		d.names[name] = true
	}
}

func (d *dropped) sorted() []string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return slices.Sorted(maps.Keys(d.names))
}
