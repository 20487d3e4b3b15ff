package deploy

import (
	_ "embed"
	"strings"
)

// Alerts is a file of alert rules for Prometheus.
//
//go:embed alerts.yaml
var Alerts string

const prometheusRule = `apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: nlproxy
  namespace: kube-system
  labels:
    app.kubernetes.io/name: nlproxy
spec:
`

// PrometheusRule is Alerts as an object for Prometheus Operator.
func PrometheusRule() string {
	text := prometheusRule
	for line := range strings.Lines(Alerts) {
		if line != "\n" {
			line = "  " + line
		}
		text += line
	}
	return text
}
