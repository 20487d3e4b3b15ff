// Package watch turns API objects, or manifest files, into immutable
// snapshots of what exists.
//
// Guarantees:
//
//   - Nothing is handed out before the first full list of every kind has
//     arrived: a start never looks like a cluster without services.
//   - A Snapshot is everything at one moment. Changes between two calls of
//     [Source.Snapshot] are coalesced, and one that was undone in between is
//     no change.
//   - A source that loses its server, or its directory, keeps its last state.
//     When it comes back, only what really differs counts as changed.
//   - A bad value costs only itself, a bad object only itself. Each is
//     reported as a [Problem] that names the object and the field, once, until
//     the problems of that object change.
//   - The time at which a change of endpoints was asked for comes once, with
//     the first Snapshot that shows the change, and never from before the
//     start.
//   - The order in which objects arrive does not matter: equal objects make
//     equal snapshots.
//
// Both kinds of source reduce objects by the same functions as they arrive;
// no object is kept. A Source is used from any number of goroutines, but its
// snapshots belong to one consumer, because each call of Snapshot starts anew
// what counts as changed.
package watch
