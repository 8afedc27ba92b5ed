// The one instant that everything on the page shows.

export class Clock extends EventTarget {
  constructor() {
    super();
    this.t = 0; // microseconds after the workload began
    this.end = 0;
    this.speed = 1; // microseconds of lab time per second of the viewer's
    this.playing = false;
    this.rests = false; // at an instant that nobody chose, so that playing starts at the beginning
    this.follow = false; // stays at the end of a run that goes on
  }

  set(t) {
    t = Math.min(Math.max(t, 0), this.end);
    this.rests = false;
    if (t === this.t) return;
    this.t = t;
    this.dispatchEvent(new Event("tick"));
  }

  // extend moves the end; now is the last instant of what is followed.
  extend(end, now = end) {
    this.end = end;
    if (this.follow) this.set(now);
    this.dispatchEvent(new Event("extent"));
  }

  toggle(on = !this.playing) {
    if (on === this.playing) return;
    if (on && (this.rests || this.t >= this.end)) this.set(0);
    this.playing = on;
    this.follow = false;
    this.dispatchEvent(new Event("state"));
    if (!on) return;
    let last = performance.now();
    const step = (now) => {
      if (!this.playing) return;
      this.set(this.t + ((now - last) / 1000) * this.speed);
      last = now;
      if (this.t >= this.end) { this.toggle(false); return; }
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  setSpeed(speed) {
    this.speed = speed;
    this.dispatchEvent(new Event("state"));
  }
}
