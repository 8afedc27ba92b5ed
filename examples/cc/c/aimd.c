/* The control of examples/cc/aimd in C: docs/module-abi.md.
 *
 * clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -o aimd.wasm aimd.c
 */
#include <stdint.h>

#define EXPORT(name) __attribute__((export_name(name)))

static struct {
	double window, rate;
	int64_t timer, not_before, now;
	union { int64_t i; double f; } args[123];
} mail;

static struct {
	double increase, decrease, packet, window;
	int64_t cut, rtt;
} state;

static const char text[] =
	"{\"name\":\"aimd-c\",\"about\":\"Additive increase, multiplicative decrease.\",\"ecn\":true,\"params\":["
	"{\"name\":\"increase\",\"kind\":\"number\",\"min\":0.001,\"max\":1000,\"default\":\"1\",\"about\":\"Packets added per RTT.\"},"
	"{\"name\":\"decrease\",\"kind\":\"share\",\"min\":0.01,\"max\":0.99,\"default\":\"0.5\",\"about\":\"Share taken by a mark or loss.\"}]}";

static struct {
	uint32_t version;
	const void *mail, *state;
	uint32_t state_size;
	const void *text;
	uint32_t text_size;
} header = {1, &mail, &state, sizeof state, text, sizeof text - 1};

EXPORT("weft_cc") const void *weft_cc(void) { return &header; }

static void shrink(void)
{
	if (mail.now - state.cut < state.rtt)
		return;
	state.cut = mail.now;
	state.window *= 1 - state.decrease;
	if (state.window < state.packet)
		state.window = state.packet;
}

EXPORT("weft_event") void weft_event(int32_t event)
{
	switch (event) {
	case 0: /* init */
		state.packet = mail.args[2].i;
		state.rtt = mail.args[4].i;
		state.cut = -state.rtt;
		state.increase = mail.args[8].f;
		state.decrease = mail.args[9].f;
		state.window = mail.args[0].f * (mail.args[4].i / 1e12) / 8;
		if (state.window < state.packet)
			state.window = state.packet;
		break;
	case 3: /* acknowledgement */
		state.rtt = mail.args[4].i;
		if (mail.args[6].i & 1)
			shrink();
		else
			state.window += state.increase * state.packet * mail.args[0].i / state.window;
		break;
	case 4: /* loss */
		shrink();
	}
	mail.window = state.window;
	mail.timer = INT64_MAX;
}
