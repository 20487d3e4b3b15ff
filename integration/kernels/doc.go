// Package kernels runs tests of the other packages, and the demonstration, on
// kernels of Debian other than that of this machine, under emulation.
//
// Each test binary is built once and runs unchanged on every kernel, as root of
// a machine that has the tools of this one, and nothing but them. The kernels
// come from Debian's archive, by the names of their packages, and stay in the
// user's cache.
package kernels
