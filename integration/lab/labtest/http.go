package labtest

import (
	"net/http"
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab"
)

// Get is what a server of HTTP says to a request from within ns. Without a reply
// it fails t.
func Get(t testing.TB, ns *lab.Namespace, url string) lab.Reply {
	t.Helper()
	r, err := ns.Request(t.Context(), http.MethodGet, url, "")
	if err != nil {
		t.Fatal(err)
	}
	return r
}
