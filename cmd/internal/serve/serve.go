package serve

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
	defaultRetry = 5 * time.Second // as kube-proxy 1.37
	// grace is how long a request may take to end once the server is to stop.
	grace = 2 * time.Second
	// headerTimeout is how long a client may take to say what it wants.
	headerTimeout = 10 * time.Second
	// idleTimeout is how long a connection is kept without a request.
	idleTimeout = 2 * time.Minute
)

// Options configures a Server.
type Options struct {
	// Name says in errors and in the log what is served. Required.
	Name string
	// Address to serve on. Without a port, or if it is not valid, nothing is
	// served. The unspecified address of either family stands for all
	// addresses of both.
	Address netip.AddrPort
	// Handler answers all requests. Required.
	Handler http.Handler
	// Retry is how soon a failed attempt to serve is repeated. 0 means 5 seconds.
	Retry time.Duration
	// HardFail ends Run with the first failure, which is not repeated.
	HardFail bool
	// Logger is warned of the first failed attempt in a row; nil for none.
	Logger *zap.Logger
}

// Validate names the first field that cannot be used.
func (o Options) Validate() error {
	switch {
	case o.Name == "":
		return errors.New("serve: Name is missing")
	case o.Handler == nil:
		return fmt.Errorf("serve %s: Handler is missing", o.Name)
	case o.Retry < 0:
		return fmt.Errorf("serve %s: Retry %v is negative", o.Name, o.Retry)
	}
	return nil
}

// Server serves HTTP on one address.
type Server struct {
	opts Options
	// listen is a seam for tests.
	listen func(ctx context.Context, address netip.AddrPort) (net.Listener, error)
	// early is what Listen opened for Run; nil for nothing.
	early net.Listener
}

// New checks the options. Nothing is served before Run.
func New(o Options) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Retry == 0 {
		o.Retry = defaultRetry
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return &Server{opts: o, listen: listen}, nil
}

// listen opens address. For "tcp" net makes an IPv6 socket that takes IPv4
// connections too out of either unspecified address, where the kernel has IPv6
// (favoriteAddrFamily, net/ipsock_posix.go, Go 1.26).
func listen(ctx context.Context, address netip.AddrPort) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", address.String())
}

// Listen takes the address, so that nobody is refused who connects before Run
// comes to serve, which has to follow. What fails is tried again by Run, and is
// Run's to tell.
func (s *Server) Listen(ctx context.Context) {
	if s.serves() {
		s.early, _ = s.listen(ctx, s.opts.Address)
	}
}

// serves reports whether there is an address to serve on.
func (s *Server) serves() bool { return s.opts.Address.IsValid() && s.opts.Address.Port() != 0 }

// Run serves until ctx is done, and then lets requests end for up to two
// seconds. With HardFail it returns the first failure, and nil otherwise: then
// an address that cannot be had is warned of and tried again.
func (s *Server) Run(ctx context.Context) error {
	if !s.serves() {
		<-ctx.Done()
		return nil
	}
	failed := false
	for {
		listened, err := s.attempt(ctx)
		failed = failed && !listened
		switch {
		case ctx.Err() != nil:
			return nil
		case s.opts.HardFail:
			return fmt.Errorf("serve %s on %s: %w", s.opts.Name, s.opts.Address, err)
		case !failed:
			s.opts.Logger.Warn("an address is not served; trying again until it is",
				zap.String("what", s.opts.Name), zap.Stringer("address", s.opts.Address),
				zap.Duration("every", s.opts.Retry), zap.Error(err))
		}
		failed = true
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.opts.Retry):
		}
	}
}

// attempt listens and serves until that fails or ctx is done.
func (s *Server) attempt(ctx context.Context) (listened bool, err error) {
	listener := s.early
	if s.early = nil; listener == nil {
		if listener, err = s.listen(ctx, s.opts.Address); err != nil {
			return false, err
		}
	}
	s.opts.Logger.Info("serving", zap.String("what", s.opts.Name), zap.Stringer("address", listener.Addr()))
	server := HTTP(s.opts.Handler, s.opts.Logger)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		server.Close()
		return true, err
	case <-ctx.Done():
	}
	Stop(server)
	return true, <-ended
}

// HTTP returns a server that does not wait for ever for clients, and that tells
// log of what goes wrong.
func HTTP(h http.Handler, log *zap.Logger) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, ErrorLog: zap.NewStdLog(log)}
}

// Stop closes what s listens on, lets requests end for up to two seconds, and
// then closes their connections.
func Stop(s *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if s.Shutdown(ctx) != nil {
		s.Close()
	}
}
