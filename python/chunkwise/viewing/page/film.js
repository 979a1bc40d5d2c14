// The reads of a walk, one after another, and what libhdf5's chunk cache holds meanwhile.

class Film {
  constructor(drawing, costs, go) {
    Object.assign(this, { drawing, costs, go, record: null, number: 0, timer: 0 });
    $("play").addEventListener("click", () => (this.timer ? this.stop() : this.play()));
    $("step").addEventListener("click", async () => { this.stop(); if (await this.load()) this.seek(this.next()); });
    $("at").addEventListener("input", async () => { this.stop(); const at = Number($("at").value); if (await this.load()) this.seek(at); });
    $("of-trace").addEventListener("change", () => this.forget(true));
    new ResizeObserver(() => this.record && this.drawSlots()).observe($("slots"));
  }

  // Another read, layout or cache: the film is another one.
  forget(canPlay) {
    this.stop();
    this.record = this.state = null;
    this.number = 0;
    $("film").hidden = !canPlay;
    $("slots").hidden = true;
    $("told").textContent = "";
    $("at").value = 0;
    this.drawing.cells = null;
    this.drawing.redraw();
  }

  async load() {
    if (this.record) return true;
    const { read, ...asked } = this.costs.asked;
    try {
      this.record = await ask("film", { ...asked, read: $("of-trace").checked ? "" : read[this.costs.chosen] });
    } catch (error) {
      $("told").textContent = error.message;
      return false;
    }
    $("at").max = this.record.frames.length;
    $("slots").hidden = false;
    return true;
  }

  // The end of the read that comes next.
  next() {
    const { frames } = this.record;
    const at = frames[Math.min(this.number, frames.length - 1)][0];
    const end = frames.findIndex(([read], i) => i > this.number && read > at);
    return end < 0 ? frames.length : end;
  }

  async play() {
    if (!(await this.load())) return;
    const { length } = this.record.frames;
    if (this.number >= length) this.number = 0;
    $("play").textContent = "Pause";
    // Some half a minute at most.
    const each = Math.max(1, Math.round(length / 600));
    this.timer = setInterval(() => {
      if (this.number < length) this.seek(Math.min(length, this.number + each));
      else this.stop();
    }, 50);
  }
  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    $("play").textContent = "Play";
  }

  // What the cache holds after so many frames: followed from the state before, if that is earlier.
  follow(number) {
    let { state } = this;
    if (!state || state.number > number) state = { number: 0, held: new Set(), seen: new Set(), loads: 0, again: 0, last: null, dropped: [] };
    for (; state.number < number; state.number += 1) {
      const [, chunk, loaded, dropped] = this.record.frames[state.number];
      const again = loaded && state.seen.has(chunk);
      state.loads += loaded;
      state.again += again;
      state.last = { chunk, colour: loaded ? (again ? "--error" : "--mark") : "--good" };
      dropped.forEach((one) => state.held.delete(one));
      if (this.record.room) state.held.add(chunk);
      state.seen.add(chunk);
    }
    this.state = state;
    return state;
  }

  seek(number) {
    this.number = number;
    $("at").value = number;
    const { reads, frames, grid, room, operations } = this.record;
    const state = this.follow(number);
    const { drawing } = this;
    const index = (chunk) => {
      const found = [];
      for (let axis = grid.length - 1; axis >= 0; axis -= 1) {
        found[axis] = chunk % grid[axis];
        chunk = Math.floor(chunk / grid[axis]);
      }
      return found;
    };
    const at = number ? frames[number - 1][0] : 0;
    // The plane of the read, of which the chunks in other planes are not seen.
    this.go(...reads[at], state.last ? index(state.last.chunk) : null);
    const cell = (chunk, colour, alpha) => {
      const found = index(chunk);
      const isHere = found.every((k, axis) => axis === drawing.vertical || axis === drawing.horizontal || k === drawing.at[axis]);
      return isHere ? [{ index: [drawing.vertical < 0 ? 0 : found[drawing.vertical], found[drawing.horizontal]], colour: css(colour), alpha }] : [];
    };
    drawing.cells = [...state.held].filter((chunk) => chunk !== state.last?.chunk).flatMap((chunk) => cell(chunk, "--good", 0.8));
    if (state.last) drawing.cells.push(...cell(state.last.chunk, state.last.colour, 1));
    drawing.redraw();
    this.drawSlots();
    const rest = operations > reads.length ? ` The film shows the first ${counted(reads.length, "read")} of ${count(operations)}.` : "";
    $("told").textContent = `Read ${count(at + 1)}: ${counted(number, "chunk")} touched so far, ${count(state.loads)} loaded and decoded, ${count(state.again)} of them again. The cache holds ${count(state.held.size)} of at most ${count(room)}.${rest}`;
  }

  // Each held chunk in the order of its slot, and how full the cache is.
  drawSlots() {
    const canvas = $("slots");
    const ratio = devicePixelRatio || 1;
    const { width, height } = canvas.getBoundingClientRect();
    if (!width) return;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const { held, last } = this.follow(this.number);
    const room = Math.max(1, this.record.room);
    const shown = Math.min(room, 600);
    const side = Math.max(4, Math.min(26, Math.floor(Math.sqrt((width * (height - 22)) / shown))));
    const across = Math.max(1, Math.floor(width / side));
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = css("--soft");
    context.fillText(`The cache: room for ${counted(this.record.room, "chunk")}${room > shown ? `, ${count(shown)} shown` : ""}`, 0, 12);
    const list = [...held];
    for (let i = 0; i < shown; i += 1) {
      const [x, y] = [(i % across) * side, 20 + Math.floor(i / across) * side];
      if (y + side > height) break;
      const chunk = list[i];
      context.strokeStyle = css("--line");
      context.strokeRect(x + 0.5, y + 0.5, side - 2, side - 2);
      if (chunk === undefined) continue;
      context.fillStyle = css(chunk === last?.chunk ? last.colour : "--good");
      context.fillRect(x + 1, y + 1, side - 3, side - 3);
    }
  }
}
