package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// A request is one that has reached an api.
type request struct {
	line  string // method and path
	event eventsv1.Event
}

// An api stands for the API server. It answers in the goroutine that asks, so
// that its clients may run in a bubble of synctest.
type api struct {
	mu       sync.Mutex
	requests []request
	// status of an answer to a method; 0 is for no answer.
	status map[string]int
	// before, if set, is called before each answer.
	before func()
}

func newAPI() *api {
	return &api{status: map[string]int{http.MethodPost: http.StatusCreated, http.MethodPatch: http.StatusOK}}
}

// RoundTrip is http.RoundTripper's.
func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var e eventsv1.Event
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.requests = append(a.requests, request{r.Method + " " + r.URL.Path, e})
	status, before := a.status[r.Method], a.before
	a.mu.Unlock()
	if before != nil {
		before()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	return answer(status, body), nil
}

func answer(status int, body []byte) *http.Response {
	if status >= http.StatusBadRequest {
		reason := metav1.StatusReasonForbidden
		if status == http.StatusNotFound {
			reason = metav1.StatusReasonNotFound
		}
		body, _ = json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Reason: reason, Code: int32(status),
		})
	}
	return &http.Response{
		StatusCode: status,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(bytes.NewReader(body)),
	}
}

// setStatus makes all later answers to a method of this status; 0 is for none.
func (a *api) setStatus(method string, status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status[method] = status
}

// take are the requests since it was called last.
func (a *api) take() []request {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.requests
	a.requests = nil
	return all
}

// recorder is a recorder at a, and its log.
func (a *api) recorder(t *testing.T, node string) (*Recorder, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.WarnLevel)
	r, err := New(&rest.Config{Host: "http://api", Transport: a, QPS: -1}, node, Options{Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	return r, logs
}
