package conntrack

import (
	"testing"

	"github.com/nlproxy/nlproxy/integration/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }
