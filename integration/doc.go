// Package integration holds the tests that belong to no single package: of the
// product as a whole against real kernels, tools and API servers, and of the
// repository's own rules.
//
// Guarantee: what a test needs and does not find makes it skip and say so, and
// fail where NLPROXY_TEST_REQUIRE=1.
package integration
