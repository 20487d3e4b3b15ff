package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab"
	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

// imageVariable is the folder that holds the files of the image.
const imageVariable = "NLPROXY_TEST_IMAGE"

// An Image is what the product's image recipe makes.
type Image struct {
	// Root is a folder with the files of the image, and no other.
	Root string
	// Entrypoint is the program that it runs, and its first arguments.
	Entrypoint []string
}

// BuildImage does what the product's image recipe says, without an image of Go
// to do it in: its commands run here, and the files that it copies into the
// image are in a folder. It is called as Build is.
func BuildImage() {
	if lab.Inside() {
		return
	}
	dir, err := buildImage()
	if err == nil {
		err = os.Setenv(imageVariable, dir)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "daemon: image: %v\n", err)
	}
}

// TheImage is what BuildImage has made. Without it t is skipped, or failed where
// nothing may be missing.
func TheImage(t testing.TB) Image {
	t.Helper()
	dir := os.Getenv(imageVariable)
	if dir == "" {
		labtest.Missing(t, "the image of %s, which could not be built", product)
	}
	text, err := os.ReadFile(filepath.Join(dir, "entrypoint"))
	if err != nil {
		t.Fatal(err)
	}
	i := Image{Root: filepath.Join(dir, "root")}
	if err := json.Unmarshal(text, &i.Entrypoint); err != nil {
		t.Fatalf("the image's entrypoint %s: %v", text, err)
	}
	return i
}

// buildImage builds into the user's cache, as build does.
func buildImage() (dir string, err error) {
	module, err := run("go", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	source := filepath.Dir(strings.TrimSpace(string(module)))
	recipe, err := os.ReadFile(filepath.Join(source, "cmd", "nlproxy", "Dockerfile"))
	if err != nil {
		return "", err
	}
	stages, err := stagesOf(string(recipe))
	if err != nil {
		return "", err
	}
	if dir, err = cached(module); err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "image")
	unlock, err := labtest.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return dir, assemble(stages, source, dir)
}

// assemble makes the image of a recipe of two stages in dir.
func assemble(stages []stage, source, dir string) error {
	if len(stages) != 2 || stages[1].from != "scratch" {
		return fmt.Errorf("not two stages, the second from scratch: %+v", stages)
	}
	// What the first stage makes outside of its sources is put below dir.
	built := filepath.Join(dir, "built")
	for _, s := range stages[0].steps {
		if err := buildStep(s, source, built); err != nil {
			return err
		}
	}
	root := filepath.Join(dir, "root")
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	for _, s := range stages[1].steps {
		if err := copyStep(s, stages[0].name, built, dir); err != nil {
			return err
		}
	}
	return nil
}

// output is the folder of the first stage in which it leaves what it has made.
const output = "/out/"

// buildStep does one step of the first stage. The sources are where they are, and
// their modules at hand.
func buildStep(s step, source, built string) error {
	switch {
	case s.instruction == "WORKDIR", s.instruction == "COPY", s.rest == "go mod download":
		return nil
	case s.instruction != "RUN":
		return fmt.Errorf("%s %s: not known here", s.instruction, s.rest)
	}
	// A name that is there already is not made again.
	script := strings.ReplaceAll(s.rest, "ln -s ", "ln -sf ")
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(script, output, built+"/"))
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// copyStep does one step of the second stage.
func copyStep(s step, from, built, dir string) error {
	words := strings.Fields(s.rest)
	switch {
	case s.instruction == "ENTRYPOINT":
		return os.WriteFile(filepath.Join(dir, "entrypoint"), []byte(s.rest), 0o644)
	case s.instruction == "COPY" && len(words) == 3 && words[0] == "--from="+from && strings.HasPrefix(words[1], output):
		below := strings.TrimPrefix(words[1], output)
		return copyLinked(filepath.Join(built, below), filepath.Join(dir, "root", words[2]))
	}
	return fmt.Errorf("%s %s: not known here", s.instruction, s.rest)
}

// copyLinked copies a tree: files become other names of the same ones, which a
// later build replaces and does not write to.
func copyLinked(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, below)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		return os.Link(path, target)
	})
}

// Files are the paths of all that is in the image but folders.
func (i Image) Files(t testing.TB) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(i.Root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, strings.TrimPrefix(path, i.Root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	return paths
}
