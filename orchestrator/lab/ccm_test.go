package lab

import (
	"testing"

	"weft/transport"
)

// A port is congested where marking begins, and light up to half of that, unless the lab says
// otherwise; marking is that of the congestion control inside.
func TestCCMThresholdsFollowTheMarking(t *testing.T) {
	for text, want := range map[string][3]string{
		"transport: {kind: ccm}":                                          {"100KB/25Gbps", "100KB/25Gbps", "50KB/25Gbps"},
		"transport: {kind: ccm, ccm: {inner: swift}}":                     {"25%bdp", "25%bdp", "12.5%bdp"},
		"transport: {kind: ccm, ccm: {roce: {preset: paper}}}":            {"5KB", "5KB", "2.5KB"},
		"transport: {kind: ccm}\nqueues: {ecn: {kmin: 200KB, kmax: 1MB}}": {"200KB", "200KB", "100KB"},
		"transport: {kind: ccm, ccm: {congested: 80KB}}":                  {"100KB/25Gbps", "80KB", "40KB"},
		"transport: {kind: ccm, ccm: {congested: 80KB, light: 8KB}}":      {"100KB/25Gbps", "80KB", "8KB"},
	} {
		labs, err := Parse("lab.yaml", []byte("weft: 1\nname: lab\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 1MB}]\n"+text), Options{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		c := labs[0].Transport.Section.(*transport.CCM)
		if got := [3]string{labs[0].Queues.ECN.Kmin.String(), c.Congested.String(), c.Light.String()}; got != want {
			t.Errorf("%s: kmin, congested, light are %q, want %q", text, got, want)
		}
	}
	none := "weft: 1\nname: lab\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 1MB}]\ntransport: {kind: ccm, ccm: {inner: pc4"
	if labs, err := Parse("lab.yaml", []byte(none+"}}"), Options{}); err != nil || labs[0].Transport.Section.(*transport.CCM).Recovery != "selective-repeat" {
		t.Errorf("PC4 inside: %v", err)
	}
	bad := "weft: 1\nname: lab\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 1MB}]\ntransport: {kind: ccm, ccm: {roce: {repath: 3}}}"
	if _, err := Parse("lab.yaml", []byte(bad), Options{}); err == nil {
		t.Error("a source that repaths under CCM was accepted")
	}
}
