// Package memory gives back what a process needs no more.
//
// Guarantees: nothing that is given back is lost. The program's own pages come
// back from the page cache, or from the file, when they are needed again.
package memory
