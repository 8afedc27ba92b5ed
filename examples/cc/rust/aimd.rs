// The control of examples/cc/aimd in Rust: docs/module-abi.md.
//
// rustc --target wasm32-unknown-unknown --crate-type cdylib -O -C panic=abort -C strip=symbols -C linker=wasm-ld aimd.rs
#![no_std]

use core::mem::size_of;
use core::ptr::null;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}

#[repr(C)]
pub struct Mail {
    window: f64,
    rate: f64,
    timer: i64,
    not_before: i64,
    now: i64,
    args: [u64; 123],
}

#[repr(C)]
pub struct State {
    increase: f64,
    decrease: f64,
    packet: f64,
    window: f64,
    cut: i64,
    rtt: i64,
}

#[repr(C)]
pub struct Header {
    version: u32,
    mail: *const Mail,
    state: *const State,
    state_size: u32,
    text: *const u8,
    text_size: u32,
}

static TEXT: &str = r#"{"name":"aimd-rust","about":"Additive increase, multiplicative decrease.","ecn":true,"params":[
{"name":"increase","kind":"number","min":0.001,"max":1000,"default":"1","about":"Packets added per RTT."},
{"name":"decrease","kind":"share","min":0.01,"max":0.99,"default":"0.5","about":"Share taken by a mark or loss."}]}"#;

static mut MAIL: Mail = Mail { window: 0.0, rate: 0.0, timer: 0, not_before: 0, now: 0, args: [0; 123] };
static mut STATE: State = State { increase: 0.0, decrease: 0.0, packet: 0.0, window: 0.0, cut: 0, rtt: 0 };
static mut HEADER: Header =
    Header { version: 1, mail: null(), state: null(), state_size: 0, text: null(), text_size: 0 };

#[no_mangle]
pub unsafe extern "C" fn weft_cc() -> *const Header {
    HEADER.mail = &MAIL;
    HEADER.state = &STATE;
    HEADER.state_size = size_of::<State>() as u32;
    HEADER.text = TEXT.as_ptr();
    HEADER.text_size = TEXT.len() as u32;
    &HEADER
}

unsafe fn shrink(now: i64) {
    let s = &mut STATE;
    if now - s.cut < s.rtt {
        return;
    }
    s.cut = now;
    s.window *= 1.0 - s.decrease;
    if s.window < s.packet {
        s.window = s.packet;
    }
}

#[no_mangle]
pub unsafe extern "C" fn weft_event(event: i32) {
    let (m, s) = (&mut MAIL, &mut STATE);
    match event {
        // The beginning of the connection.
        0 => {
            s.packet = m.args[2] as i64 as f64;
            s.rtt = m.args[4] as i64;
            s.cut = -s.rtt;
            s.increase = f64::from_bits(m.args[8]);
            s.decrease = f64::from_bits(m.args[9]);
            s.window = f64::from_bits(m.args[0]) * (s.rtt as f64 / 1e12) / 8.0;
            if s.window < s.packet {
                s.window = s.packet;
            }
        }
        // An acknowledgement, and whether it was marked.
        3 => {
            s.rtt = m.args[4] as i64;
            if m.args[6] & 1 != 0 {
                shrink(m.now);
            } else {
                s.window += s.increase * s.packet * (m.args[0] as i64 as f64) / s.window;
            }
        }
        // A loss.
        4 => shrink(m.now),
        _ => {}
    }
    m.window = s.window;
    m.timer = i64::MAX;
}
