package health

import (
	"encoding/json"
	"net/http"
	"time"
)

// The paths that a Server answers.
const (
	Healthz = "/healthz"
	Livez   = "/livez"
)

// status is the body of an answer, with the fields of kube-proxy's ProxyHealth
// in their order (pkg/proxy/healthcheck/proxy_health.go, 1.37).
type status struct {
	LastUpdated  time.Time               `json:"lastUpdated"`
	CurrentTime  time.Time               `json:"currentTime"`
	NodeEligible *bool                   `json:"nodeEligible,omitempty"`
	Healthy      bool                    `json:"healthy"`
	Families     map[string]familyStatus `json:"status,omitempty"`
}

type familyStatus struct {
	LastUpdated time.Time `json:"lastUpdated"`
	Healthy     bool      `json:"healthy"`
}

// Handler answers Healthz, whether this node is fit for new traffic, and Livez,
// whether this process does its work: a node about to be deleted is live.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(Healthz, func(w http.ResponseWriter, _ *http.Request) {
		eligible := s.opts.Eligible()
		now := s.status(time.Now())
		now.NodeEligible = &eligible
		s.answer(w, Healthz, now, now.Healthy && eligible)
	})
	mux.HandleFunc(Livez, func(w http.ResponseWriter, _ *http.Request) {
		now := s.status(time.Now())
		s.answer(w, Livez, now, now.Healthy)
	})
	return mux
}

// answer writes one answer. A good one says that all is as of now, however long
// ago there was something to be written.
func (s *Server) answer(w http.ResponseWriter, path string, body status, good bool) {
	code := http.StatusServiceUnavailable
	if good {
		code = http.StatusOK
		body.LastUpdated = body.CurrentTime
	}
	s.opts.Answered(path, code)
	header(w)
	w.WriteHeader(code)
	text, _ := json.Marshal(body) // which only a year of five digits could refuse
	w.Write(text)
}

func header(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
}
