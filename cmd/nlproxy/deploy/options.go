package deploy

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/nlproxy/nlproxy/cmd/internal/config"
)

// DefaultImage is a name for a kustomization to replace.
const DefaultImage = "nlproxy:latest"

// Options say what the objects are for. The zero value, with an Image, is for a
// node on which the address of the Service "kubernetes" works already.
type Options struct {
	// Image is what the container runs. Required.
	Image string
	// Server is the URL by which nodes reach the API server without a Service,
	// such as https://192.0.2.10:6443; empty for the Service's address.
	Server string
	// ClusterCIDR is the range of all pods' addresses, or one of each family with
	// a comma between; empty if they are not known.
	ClusterCIDR string
	// Init adds a privileged container that sets what NET_ADMIN cannot.
	Init bool
	// Takeover is for a cluster where kube-proxy runs as kubeadm installs it.
	// Its ConfigMap is used, which has the Server and the ClusterCIDR.
	Takeover bool
}

// validate returns an error for each flag whose value cannot be used.
func (o Options) validate() error {
	return errors.Join(checkImage(o.Image), checkServer(o.Server), checkClusterCIDR(o.ClusterCIDR), o.checkTakeover())
}

// image is a reference to an image: a registry, a path, a tag and a digest
// (distribution's grammar of references, without its limits of length).
var image = regexp.MustCompile(`^([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[0-9a-f]{64})?$`)

func checkImage(name string) error {
	if !image.MatchString(name) {
		return fmt.Errorf("--image %q: must be an image such as registry.example.com/nlproxy:v1.0.0", name)
	}
	return nil
}

func checkServer(server string) error {
	if server == "" {
		return nil
	}
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || server != "https://"+u.Host || strings.ContainsAny(u.Host, `"'{} `) {
		return fmt.Errorf("--server %q: must be the URL of the API server, such as https://192.0.2.10:6443", server)
	}
	return nil
}

// checkClusterCIDR asks those who will read it.
func checkClusterCIDR(ranges string) error {
	if ranges == "" {
		return nil
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	bound := config.Bind(flags)
	if err := flags.Set("cluster-cidr", ranges); err != nil {
		return err
	}
	_, _, err := bound.Config(nil)
	return err
}

func (o Options) checkTakeover() error {
	if !o.Takeover || o.Server == "" && o.ClusterCIDR == "" {
		return nil
	}
	return errors.New("--takeover: kube-proxy's own ConfigMap is used; leave out --server and --cluster-cidr")
}
