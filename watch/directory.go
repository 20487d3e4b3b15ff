package watch

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/nlproxy/nlproxy/dataplane/model"
)

// directory is the manifests of a directory as they were read last.
type directory struct {
	path     string
	nodeName string // as configured
	hostName string
	reader   *manifestReader
	report   *reporter
	facts    *facts
	log      *zap.Logger
	files    map[string]*file
	services int // how many they held last
}

// file is the objects of one file: those that it holds, and the last good state
// of those in it that are now bad.
type file struct {
	sum      [sha256.Size]byte
	objects  map[object]manifest
	problems []Problem
}

func newDirectory(path string, o Options, f *facts, r *reporter) (*directory, error) {
	reader, err := newManifestReader()
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return &directory{
		path:     path,
		nodeName: o.NodeName,
		// The kubelet names its node so (component-helpers/node/util).
		hostName: strings.ToLower(strings.TrimSpace(host)),
		reader:   reader,
		report:   r,
		facts:    f,
		log:      o.Logger,
		files:    map[string]*file{},
	}, nil
}

// scan reads what has changed and makes it known. If the directory itself
// cannot be read, all stays as it is.
func (d *directory) scan() error {
	names, err := manifestNames(d.path)
	if err != nil {
		return fmt.Errorf("read manifests: %w", err)
	}
	found := map[string]*file{}
	for _, name := range names {
		if f := d.load(name); f != nil {
			found[name] = f
		}
	}
	d.files = found
	d.publish()
	return nil
}

// manifestNames returns the names of the manifests in a directory, sorted. As
// the kubelet does with static pods, it leaves out names that begin with a
// dot, and folders.
func manifestNames(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".yaml", ".yml", ".json":
			if !strings.HasPrefix(e.Name(), ".") {
				names = append(names, e.Name())
			}
		}
	}
	return names, nil
}

// load returns a file as it is now, or nil if it is no manifest.
func (d *directory) load(name string) *file {
	known := d.files[name]
	data, err := readRegular(filepath.Join(d.path, name))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
		return nil
	}
	if known == nil {
		known = &file{}
	}
	if err != nil {
		return &file{
			objects:  known.objects,
			problems: []Problem{{File: name, Message: err.Error()}},
		}
	}
	sum := sha256.Sum256(data)
	if sum == known.sum {
		return known
	}
	return known.become(name, sum, d.reader.read(name, data))
}

var errNotRegular = errors.New("not a regular file")

// readRegular reads a file, but waits for no pipe. It follows links: volumes of
// ConfigMaps are made of them.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	return os.ReadFile(path)
}

// become returns the file with a new content. What is refused stays as it was.
// Where not even the name could be read, everything does that is not there in
// a better state.
func (f *file) become(name string, sum [sha256.Size]byte, content []manifest) *file {
	next := &file{sum: sum, objects: map[object]manifest{}}
	first := map[object]int{}
	for _, m := range content {
		next.problems = append(next.problems, m.problems...)
		if m.object == (object{}) {
			continue
		}
		if line, again := first[m.object]; again {
			next.problems = append(next.problems, m.loses(name, fmt.Sprintf("line %d", line)))
			continue
		}
		first[m.object] = m.line
		if !m.refused {
			next.objects[m.object] = m
		} else if good, ok := f.objects[m.object]; ok {
			next.objects[m.object] = good
		}
	}
	if slices.ContainsFunc(content, func(m manifest) bool { return m.object == (object{}) }) {
		for o, good := range f.objects {
			if _, there := first[o]; !there {
				next.objects[o] = good
			}
		}
	}
	return next
}

// loses returns the problem of an object that is already defined elsewhere.
func (m manifest) loses(file, winner string) Problem {
	return Problem{
		Object:  m.object.String(),
		Message: "is already defined in " + winner + ", which counts",
		File:    file,
		Line:    m.line,
	}
}

// publish makes known what the files say together, in the order of their
// names: of two that define one object, the first counts.
func (d *directory) publish() {
	var all contents
	owner := map[object]string{}
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		f := d.files[name]
		problems := slices.Clone(f.problems)
		for _, o := range slices.SortedFunc(maps.Keys(f.objects), object.compare) {
			if winner, taken := owner[o]; taken {
				problems = append(problems, f.objects[o].loses(name, winner))
				continue
			}
			owner[o] = name
			all.add(f.objects[o])
		}
		d.report.set(object{kindFile, model.Name{Name: name}}, problems)
	}
	d.report.retain(kindFile, func(n model.Name) bool { return d.files[n.Name] != nil })
	d.warnOfEmpty(len(all.services))
	node, problems := d.ownNode(all.nodes)
	d.report.set(object{kindNode, model.Name{Name: d.nodeName}}, problems)
	d.facts.replaceAll(all, node, cmp.Or(d.nodeName, d.hostName))
}

// warnOfEmpty warns of manifests that were all removed: that is as likely a
// mistake, such as a volume that is not mounted, as it is meant.
func (d *directory) warnOfEmpty(services int) {
	if services == 0 && d.services > 0 {
		d.log.Warn("no manifest holds a Service any more: all of them are gone from this node",
			zap.String("directory", d.path), zap.Int("before", d.services))
	}
	d.services = services
}

// contents is the objects of all files, reduced.
type contents struct {
	services map[model.Name]*model.Service
	slices   map[model.Name]*slice
	nodes    []*seenNode
}

func (c *contents) add(m manifest) {
	if c.services == nil {
		c.services = map[model.Name]*model.Service{}
		c.slices = map[model.Name]*slice{}
	}
	switch v := m.value.(type) {
	case *model.Service:
		c.services[v.Name] = v
	case *slice:
		c.slices[v.name] = v
	case *seenNode:
		c.nodes = append(c.nodes, v)
	}
}

// ownNode returns the node that this one is: the one with the configured name,
// or else the only one, or else the one with the host's name. It returns nil if
// there is none.
func (d *directory) ownNode(nodes []*seenNode) (*seenNode, []Problem) {
	if len(nodes) == 0 {
		return nil, nil
	}
	if d.nodeName == "" && len(nodes) == 1 {
		return nodes[0], nil
	}
	name := cmp.Or(d.nodeName, d.hostName)
	for _, n := range nodes {
		if n.Name == name {
			return n, nil
		}
	}
	f := findings{object: object{kindNode, model.Name{Name: name}}}
	f.add("", "is not among the Nodes in the manifests; what the host says of itself does")
	return nil, f.list
}
