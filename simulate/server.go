package simulate

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server serves simulated providers on one loopback port, each below its name.
type Server struct {
	http        *http.Server
	address     string
	serving     chan struct{}  // closed when the listener has ended
	connections sync.WaitGroup // one for each open connection
	unwatch     func() bool
}

// Start listens on a free port of 127.0.0.1 and serves each handler below /name/. The server ends with Close or with
// the context, whatever comes first.
func Start(ctx context.Context, handlers map[string]http.Handler) (*Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for name, handler := range handlers {
		mux.Handle("/"+name+"/", http.StripPrefix("/"+name, handler))
	}
	s := &Server{address: listener.Addr().String(), serving: make(chan struct{})}
	s.http = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				s.connections.Add(1)
			case http.StateClosed, http.StateHijacked:
				s.connections.Done()
			}
		},
	}
	go func() {
		defer close(s.serving)
		_ = s.http.Serve(listener)
	}()
	s.unwatch = context.AfterFunc(ctx, func() { _ = s.http.Close() })
	return s, nil
}

// URL returns the base URL of a provider, such as "http://127.0.0.1:40000/chat", without a slash at its end. A path
// such as /v1 may follow it.
func (s *Server) URL(name string) string { return "http://" + s.address + "/" + name }

// Close ends every connection and waits until nothing of the server runs any more.
func (s *Server) Close() error {
	s.unwatch()
	err := s.http.Close()
	<-s.serving
	s.connections.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
