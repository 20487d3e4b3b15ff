// Package zpages serves /statusz and /flagz, by which every component of
// Kubernetes tells what it is and how it was started.
//
// A page is to be had as plain text, for people, and as JSON or YAML of the
// kinds Statusz and Flagz of config.k8s.io/v1beta1 and v1alpha1, for programs,
// with the fields and by the rules of kube-proxy 1.37. A request that accepts
// neither is answered with status 406 and a metav1.Status. Nothing of a page is
// kept from one request to the next.
//
// The library of these pages is k8s.io/apiserver 0.37 (pkg/server/statusz and
// flagz; k8s.io/component-base has their feature gates alone). It is not used: a
// server of them and nothing else takes 26.7 MB, stripped, and one of no page
// 5.7 MB. This package adds less than 40 KB to the
// binary.
package zpages
