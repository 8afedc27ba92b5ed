package record

import "testing"

// A run of programs is not named after the transport that its lab would use for something else.
func TestTransportOfManifest(t *testing.T) {
	for want, paths := range map[string][]string{
		"":       {"workload.0.collective"},
		"pc4":    {"transport.kind", "workload.0.program.0", "workload.1.collective", "workload.1.start"},
		Programs: {"transport.kind", "workload.0.program.0", "workload.0.hosts", "workload.10.program.0"},
	} {
		var m Manifest
		for _, path := range paths {
			m.Settings = append(m.Settings, Setting{Path: path, Value: "pc4"})
		}
		if got := m.Transport(); got != want {
			t.Errorf("of %v: %q, want %q", paths, got, want)
		}
		if want != Programs {
			continue
		}
		m.Settings = append(m.Settings, Setting{Path: "background.load", Value: "0"})
		if got := m.Transport(); got != Programs {
			t.Errorf("without background traffic: %q", got)
		}
		m.Settings[len(m.Settings)-1].Value = "20%"
		if got := m.Transport(); got != "pc4" {
			t.Errorf("with background traffic: %q", got)
		}
	}
}

// A run is named by what carried its packets.
func TestSender(t *testing.T) {
	for want, x := range map[string][2]string{
		"pc4": {"pc4", ""}, "tcp cubic": {Programs, "tcp cubic"}, Programs: {Programs, Programs},
		"roce (DCQCN) and tcp bbr, cubic": {"roce (DCQCN)", "tcp bbr, cubic"}, "pc4 and programs": {"pc4", Programs},
	} {
		if got := Sender(x[0], x[1]); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
	m := Manifest{Sends: "hpcc", Settings: []Setting{{Path: "transport.kind", Value: "pc4"}}}
	if got := m.Transport(); got != "hpcc" {
		t.Error(got)
	}
}
