// Package pace runs a function no more often than it should and no less often
// than it must.
//
// Guarantees: one run at a time, all from the goroutine that calls
// [Runner.Run]; triggers coalesce while a run is pending, and a trigger during
// a run leads to another run; after a failure the function runs again without
// being triggered; and the time between two runs has an upper bound.
package pace
