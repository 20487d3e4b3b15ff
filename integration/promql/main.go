// Command promql reads expressions of Prometheus, as a list in JSON, and prints
// what each of them selects. It is a module of its own, so that Prometheus stays
// out of the product's.
package main

import (
	"encoding/json"
	"log"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// A parsed expression is wrong, or selects series.
type parsed struct {
	Wrong     string     `json:",omitempty"`
	Selectors []selector `json:",omitempty"`
}

// A selector is of series with one name, by labels.
type selector struct {
	Name   string
	Labels []string
}

func main() {
	var expressions []string
	if err := json.NewDecoder(os.Stdin).Decode(&expressions); err != nil {
		log.Fatal(err)
	}
	all := make([]parsed, 0, len(expressions))
	for _, text := range expressions {
		all = append(all, parse(text))
	}
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		log.Fatal(err)
	}
}

func parse(text string) (p parsed) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return parsed{Wrong: err.Error()}
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			p.Selectors = append(p.Selectors, selectorOf(s))
		}
		return nil
	})
	return p
}

func selectorOf(s *parser.VectorSelector) selector {
	of := selector{Name: s.Name}
	for _, m := range s.LabelMatchers {
		if m.Name != labels.MetricName {
			of.Labels = append(of.Labels, m.Name)
		}
	}
	return of
}
