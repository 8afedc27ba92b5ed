package uml

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"weft/internal/fuzztest"
)

func TestFramesKeepOrder(t *testing.T) {
	var b bytes.Buffer
	w := &writer{to: &b}
	o := order{Path: []byte("/a b"), Args: texts([]string{"\xff", ""}), Clock: 7}
	if err := errors.Join(w.value(kindOrder, o), w.frame(kindOut, nil), w.frame(kindErr, []byte("x"))); err != nil {
		t.Fatal(err)
	}
	var got order
	k, body, err := readFrame(&b)
	if err := errors.Join(err, json.Unmarshal(body, &got)); err != nil || k != kindOrder ||
		!slices.Equal(strs(got.Args), []string{"\xff", ""}) {
		t.Errorf("%c %+v %v", k, got, err)
	}
	for _, want := range []string{"o", "ex"} {
		if k, body, err := readFrame(&b); err != nil || string(k)+string(body) != want {
			t.Errorf("%c %q %v", k, body, err)
		}
	}
	if _, _, err := readFrame(&b); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if err := w.frame(kindOut, make([]byte, maxBody+1)); err == nil {
		t.Error("a frame over the limit was written")
	}
}

func FuzzFrame(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add([]byte("o\x00\x00\x00\x02hi"))
	corpus.Add([]byte("login: "))
	corpus.Add([]byte("x\xff\xff\xff\xff"))
	corpus.Add([]byte("s\x00\x00\x00\x01"))
	corpus.Fuzz(func(t *testing.T, text []byte) {
		k, body, err := readFrame(bytes.NewReader(text))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := (&writer{to: &b}).frame(k, body); err != nil || !bytes.HasPrefix(text, b.Bytes()) {
			t.Errorf("%q became %q, %v", text, &b, err)
		}
	})
}

// Modules load after their dependencies, which modules.dep lists last first, and only once.
func TestModuleOrder(t *testing.T) {
	deps, err := parseDependencies(strings.NewReader("k/vxlan.ko: k/ip6.ko k/udp.ko\nk/ip6.ko: " +
		"k/udp.ko\nk/udp.ko:\nk/tun.ko:\nk/other.ko:\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := deps.order([]string{"vxlan", "absent", "tun", "vxlan"})
	if want := []string{"k/udp.ko", "k/ip6.ko", "k/vxlan.ko", "k/tun.ko"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, err := parseDependencies(strings.NewReader("nonsense")); err == nil {
		t.Error("a line without a colon was read")
	}
	circle := dependencies{"a.ko": {"b.ko"}, "b.ko": {"a.ko"}}
	if got := circle.order([]string{"a"}); len(got) != 2 {
		t.Errorf("of a circle: %v", got)
	}
}
