package integration

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// anything is for packages that may import what they like.
const anything = "*"

// imports says what each package may import besides the standard library:
// packages of this module by their folder, others by path or, for all that
// lies below, a path that ends in a slash. Facts flow down; nothing flows up.
var imports = map[string][]string{
	"cmd/nlproxy":        {anything},
	"cmd/nlproxy/deploy": {"cmd/internal/config", "github.com/spf13/pflag"},
	"cmd/internal/config": {
		"github.com/spf13/pflag",
		"go.yaml.in/yaml/v3", "sigs.k8s.io/json", "sigs.k8s.io/yaml",
		"k8s.io/apimachinery/pkg/api/resource", "k8s.io/apimachinery/pkg/apis/meta/v1",
		"k8s.io/component-base/cli/flag", "k8s.io/component-base/logs/api/v1",
		"k8s.io/kube-proxy/config/v1alpha1",
		"k8s.io/utils/net",
	},
	"cmd/internal/events": {
		"conntrack", "dataplane/model",
		"go.uber.org/zap",
		"k8s.io/api/core/v1", "k8s.io/api/events/v1", "k8s.io/apimachinery/", "k8s.io/client-go/rest",
		"k8s.io/client-go/tools/record/util", "k8s.io/client-go/util/flowcontrol",
	},
	"cmd/internal/health": {"cmd/internal/serve", "dataplane/model", "dataplane/plan", "go.uber.org/zap", "golang.org/x/sys/unix"},
	"cmd/internal/serve":  {"go.uber.org/zap"},
	"cmd/internal/logs":   {"cmd/internal/config", "github.com/go-logr/zapr", "go.uber.org/zap", "go.uber.org/zap/zapcore", "k8s.io/klog/v2"},
	"cmd/internal/memory": {"golang.org/x/sys/unix"},
	"cmd/internal/metrics": {
		"cmd/internal/zpages", "conntrack", "dataplane", "dataplane/model", "watch",
		"github.com/prometheus/client_golang/", "github.com/prometheus/procfs", "go.uber.org/zap", "k8s.io/client-go/tools/metrics",
	},
	"cmd/internal/ready": {"github.com/coreos/go-systemd/v22/daemon"},
	"cmd/internal/zpages": {
		"github.com/munnerz/goautoneg",
		"k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/runtime/schema", "sigs.k8s.io/yaml",
	},

	"watch": {
		"dataplane/model",
		"github.com/fsnotify/fsnotify", "go.uber.org/zap",
		"k8s.io/api/", "k8s.io/apimachinery/", "k8s.io/client-go/", "k8s.io/klog/v2", "k8s.io/utils/net", "sigs.k8s.io/yaml",
	},
	"watch/addr": {"github.com/vishvananda/netlink", "go.uber.org/zap"},
	"watch/pace": {},

	"dataplane": {
		"dataplane/iptables", "dataplane/kernel", "dataplane/model", "dataplane/nft", "dataplane/plan", "dataplane/rules",
		"go.uber.org/zap", "golang.org/x/sys/unix",
	},
	"dataplane/model":  {},
	"dataplane/plan":   {"dataplane/model"},
	"dataplane/sysctl": {},
	"dataplane/wire":   {"golang.org/x/sys/unix"},
	"dataplane/rules": {
		"dataplane/model",
		"github.com/google/nftables/expr", "github.com/google/nftables/xt",
		"golang.org/x/sys/unix",
	},
	"dataplane/rules/rulestest": {anything},
	"dataplane/phrase":          {"dataplane/model", "github.com/google/nftables/binaryutil", "github.com/google/nftables/expr"},
	"dataplane/xt":              {"dataplane/model", "github.com/google/nftables/expr", "github.com/google/nftables/xt"},
	"dataplane/iptables": {
		"dataplane/model", "dataplane/phrase", "dataplane/plan", "dataplane/rules", "dataplane/xt",
		"github.com/google/nftables/expr",
	},
	"dataplane/nft": {
		"dataplane/model", "dataplane/phrase", "dataplane/plan", "dataplane/rules",
		"github.com/google/nftables/expr",
	},
	"dataplane/legacy": {"dataplane/iptables", "dataplane/model", "dataplane/rules", "golang.org/x/sys/unix"},
	"dataplane/kernel": {
		"dataplane/model", "dataplane/rules", "dataplane/wire",
		"github.com/mdlayher/netlink", "golang.org/x/sys/unix",
	},
	"dataplane/leftovers": {
		"dataplane/legacy", "dataplane/model", "dataplane/rules", "dataplane/wire",
		"github.com/mdlayher/netlink", "github.com/vishvananda/netlink", "golang.org/x/sys/unix",
	},
	"dataplane/trace": {"dataplane/rules", "dataplane/xt", "github.com/google/nftables/expr", "github.com/google/nftables/xt"},

	"conntrack": {
		"dataplane/model", "dataplane/plan", "dataplane/sysctl", "dataplane/wire",
		"github.com/mdlayher/netlink", "github.com/ti-mo/conntrack", "github.com/ti-mo/netfilter",
		"go.uber.org/zap", "golang.org/x/sys/unix",
	},
}

// mayImport returns the row of a package. Nothing in the product but a command
// is built on integration, so its packages may import anything.
func mayImport(dir string) (allowed []string, ok bool) {
	if dir == "integration" || strings.HasPrefix(dir, "integration/") {
		return []string{anything}, true
	}
	allowed, ok = imports[dir]
	return allowed, ok
}

func TestPackagesImportOnlyWhatTheyMay(t *testing.T) {
	_, pkgs := repository(t)
	for _, p := range pkgs {
		allowed, ok := mayImport(p.dir)
		if !ok {
			t.Errorf("%s: not in the table of imports", p.dir)
			continue
		}
		for name, file := range p.files {
			for _, path := range imported(t, file) {
				if !isAllowed(path, allowed) {
					t.Errorf("%s: may not import %s", name, path)
				}
			}
		}
	}
}

// Rows may be broader than what is used, but not about what does not exist:
// that is a typing error that would allow nothing.
func TestTableOfImportsNamesFoldersOfTheModule(t *testing.T) {
	for dir, allowed := range imports {
		for _, path := range allowed {
			if local := !strings.Contains(path, ".") && path != anything; local {
				if _, ok := imports[path]; !ok {
					t.Errorf("%s: imports %s, which has no row", dir, path)
				}
			}
		}
	}
}

func imported(t *testing.T, file *ast.File) (paths []string) {
	t.Helper()
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, strings.TrimPrefix(path, module+"/"))
	}
	return paths
}

func isAllowed(path string, allowed []string) bool {
	first, _, _ := strings.Cut(path, "/")
	standard := !strings.Contains(first, ".") && !slices.Contains(top, first)
	return standard || slices.ContainsFunc(allowed, func(a string) bool {
		return a == anything || a == path || strings.HasSuffix(a, "/") && strings.HasPrefix(path, a)
	})
}

// isProduct reports whether a package is, or can become, part of the binary:
// lab is behind one of the commands.
func isProduct(dir string) bool {
	return dir == "integration/lab" ||
		dir != "integration" && !strings.HasPrefix(dir, "integration/") && !strings.HasSuffix(dir, "test")
}

// Only lab may run a program, which is the same one in another namespace.
func TestProductRunsNoProgram(t *testing.T) {
	_, pkgs := repository(t)
	for _, p := range pkgs {
		if !isProduct(p.dir) || p.dir == "integration/lab" {
			continue
		}
		for name, file := range p.files {
			if slices.Contains(imported(t, file), "os/exec") {
				t.Errorf("%s: imports os/exec", name)
			}
		}
	}
}

func TestProductContainsNoTestSupport(t *testing.T) {
	_, pkgs := repository(t)
	for _, p := range pkgs {
		if !isProduct(p.dir) {
			continue
		}
		for name, file := range p.files {
			for _, path := range imported(t, file) {
				if path == "testing" || !isProduct(path) {
					t.Errorf("%s: imports %s", name, path)
				}
			}
		}
	}
}
