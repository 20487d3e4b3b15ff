// Package traffic holds the tests that send real packets through rules which
// the product programmed.
//
// A test is a table of rows and one loop. Manifests are read as the product
// reads them and handed to a Dataplane whose socket is in the namespace of a
// small node; a row says who sends to which frontend and what must come of it,
// and is tried over every network and both families. What a test changes, it
// changes in the objects, and has the Dataplane make the kernel agree.
//
// Nothing waits for time to pass: refusals and drops are told apart by what
// comes back before a deadline.
package traffic
