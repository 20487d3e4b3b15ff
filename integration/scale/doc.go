// Package scale measures the dataplane on large clusters, against what the
// kernel alone needs for the same bytes in the same run.
package scale
