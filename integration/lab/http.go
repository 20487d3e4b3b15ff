package lab

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
)

// A Reply is what a server of HTTP says to one request.
type Reply struct {
	Status int
	Header http.Header
	Body   string
}

// Request asks a server of HTTP from within n, by a connection of its own. A
// reply that sends elsewhere is returned, and not followed.
func (n *Namespace) Request(ctx context.Context, method, url, body string) (Reply, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return Reply{}, err
	}
	return n.Ask(request)
}

// Ask is Request for a request that has headers.
func (n *Namespace) Ask(request *http.Request) (r Reply, err error) {
	request.Close = true
	transport := &http.Transport{DialContext: n.DialContext}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return Reply{}, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	return Reply{response.StatusCode, response.Header, string(text)}, err
}
