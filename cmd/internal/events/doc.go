// Package events tells the API server what happens to this node and to its
// services, where kubectl and dashboards look for it.
//
// Guarantees:
//   - No method of a Recorder waits for the API server, and all may be called
//     on a nil Recorder, which records nothing, and from any goroutine.
//   - What waits to be sent is bounded: 100 events. So is what is remembered of
//     events that were sent: each is forgotten six to twelve minutes after it
//     last happened, and no more than 25 of the node, and 25 of services, are
//     new at once, with one more in five minutes after that. What is beyond
//     these bounds is counted, and lost.
//   - An event that happens again within that time is one object with a count,
//     not two objects.
//   - A failure to record is logged and ends nothing.
//
// Events have the reasons, actions and objects of kube-proxy 1.37, and name the
// controller kube-proxy, which is the part that this program plays in the
// cluster: filters and alerts that ask for it go on. The instance is
// nlproxy-NODE, so that both programs can be told apart on a node that goes
// from one to the other.
//
// The rights that this takes are create and patch on events of the group
// events.k8s.io.
package events
