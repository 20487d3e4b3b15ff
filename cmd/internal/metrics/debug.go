package metrics

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
)

// maxLevel is the longest text, in bytes, that is read as a level.
const maxLevel = 64

// debug adds profiles and the flags that may be changed while running, as
// kube-proxy serves them with enableProfiling. Importing net/http/pprof also
// puts the profiles into http.DefaultServeMux, which nothing here serves.
func (m *Metrics) debug(mux *http.ServeMux) {
	mux.Handle("/debug/pprof", http.RedirectHandler("/debug/pprof/", http.StatusFound))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/debug/flags", listFlags)
	mux.HandleFunc("/debug/flags/", listFlags)
	mux.HandleFunc("/debug/flags/v", m.putVerbosity)
}

func listFlags(w http.ResponseWriter, _ *http.Request) {
	plain(w, "flags that may be changed by PUT:\n/debug/flags/v\n")
}

// putVerbosity takes a level by PUT, with kube-proxy's answers.
func (m *Metrics) putVerbosity(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		answer(w, http.StatusNotAcceptable, "unsupported http method")
		return
	}
	level, err := m.takeVerbosity(r.Body)
	if err != nil {
		answer(w, http.StatusBadRequest, err.Error())
		return
	}
	answer(w, http.StatusOK, "successfully set klog.logging.verbosity to "+level)
}

func (m *Metrics) takeVerbosity(body io.Reader) (level string, err error) {
	if m.opts.SetVerbosity == nil {
		return "", errors.New("the verbosity cannot be changed")
	}
	text, err := io.ReadAll(io.LimitReader(body, maxLevel))
	if err != nil {
		return "", fmt.Errorf("read level: %w", err)
	}
	return string(text), m.opts.SetVerbosity(string(text))
}

// answer is a line with a status.
func answer(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, line)
}
