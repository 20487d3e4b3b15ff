package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"go.uber.org/zap"
)

const (
	defaultRetry = 5 * time.Second
	// grace is how long a request may take to end once the server is to stop.
	grace = 2 * time.Second
	// headerTimeout is how long a client may take to say what it wants.
	headerTimeout = 10 * time.Second
)

// ServerOptions configures a Server.
type ServerOptions struct {
	// Address to serve on. Without a port, or if it is not valid, nothing is
	// served.
	Address netip.AddrPort
	// Handler answers GET /metrics. Required.
	Handler http.Handler
	// Retry is how soon a failed attempt to serve is repeated. 0 means 5 seconds.
	Retry time.Duration
	// Logger is warned of the first failed attempt in a row; nil for none.
	Logger *zap.Logger
}

// Server serves metrics over HTTP.
type Server struct {
	opts ServerOptions
	// listen is a seam for tests.
	listen func(ctx context.Context, address netip.AddrPort) (net.Listener, error)
}

// NewServer checks the options. Nothing is served before Run.
func NewServer(o ServerOptions) (*Server, error) {
	switch {
	case o.Handler == nil:
		return nil, errors.New("metrics server: Handler is missing")
	case o.Retry < 0:
		return nil, fmt.Errorf("metrics server: Retry %v is negative", o.Retry)
	}
	if o.Retry == 0 {
		o.Retry = defaultRetry
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return &Server{o, listen}, nil
}

func listen(ctx context.Context, address netip.AddrPort) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", address.String())
}

// Run serves until ctx is done, and then lets requests end for up to two
// seconds. An address that cannot be had is no reason to stop: it is warned of
// and tried again.
func (s *Server) Run(ctx context.Context) {
	if !s.opts.Address.IsValid() || s.opts.Address.Port() == 0 {
		return
	}
	failed := false
	for ctx.Err() == nil {
		listener, err := s.listen(ctx, s.opts.Address)
		if err == nil {
			failed = false
			err = s.serve(ctx, listener)
		}
		if err != nil && !failed && ctx.Err() == nil {
			s.opts.Logger.Warn("metrics are not served; trying again until they are",
				zap.Stringer("address", s.opts.Address), zap.Duration("every", s.opts.Retry), zap.Error(err))
		}
		failed = err != nil
		select {
		case <-ctx.Done():
		case <-time.After(s.opts.Retry):
		}
	}
}

// serve returns nil once ctx is done.
func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.opts.Handler)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	s.opts.Logger.Info("serving metrics", zap.Stringer("address", listener.Addr()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		server.Close()
	}
	<-ended
	return nil
}
