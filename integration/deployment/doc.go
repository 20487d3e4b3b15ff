// Package deployment tries what nlproxy prints for deploying it, on a node of
// package lab with the real API server: the objects and their rights, the image
// in a container's confinement, the commands in comments, and what a pod needs
// of memory and CPU.
package deployment
