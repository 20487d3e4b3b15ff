// Command etcd is etcd's own server, built at the version that the API server
// beside it was built with.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
