// Package ready tells a service manager, by the protocol of sd_notify(3), when
// this process serves, takes up another configuration, and ends.
//
// Guarantees:
//   - Without a service manager there is no Notifier but nil, on which every
//     method does nothing and returns nil: callers need not ask.
//   - Each message is one datagram, sent before the method returns. No answer is
//     waited for. A message that cannot be sent is an error and nothing more.
//   - All methods may be called from any goroutine.
package ready
