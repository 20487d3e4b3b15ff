package lab_test

import (
	"net/http"
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestRequestIsAnsweredFromWithinANamespaceAsItIs(t *testing.T) {
	ns := labtest.Namespace(t)
	l, err := ns.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusFound)
		_, _ = w.Write([]byte(r.Method + " " + r.URL.String()))
	})}
	go server.Serve(l)
	defer server.Close()
	got := labtest.Get(t, ns, "http://127.0.0.1:8080/here?x=1")
	if got.Status != http.StatusFound || got.Header.Get("Location") != "/elsewhere" || got.Body != "GET /here?x=1" {
		t.Errorf("%+v", got)
	}
	if _, err := labtest.Namespace(t).Request(t.Context(), http.MethodGet, "http://127.0.0.1:8080/", ""); err == nil {
		t.Error("answered from another namespace")
	}
}
