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
  forget(canPlay, why = "") {
    this.stop();
    for (const id of ["play", "step", "at"]) $(id).disabled = Boolean(why);
    this.record = this.state = null;
    this.number = 0;
    $("film").hidden = !canPlay && !why;
    $("slots").hidden = true;
    $("film-status").textContent = why;
    $("at").value = 0;
    this.drawing.cells = null;
    this.drawing.redraw();
  }

  async load() {
    if (this.record) return true;
    const { read, ...query } = this.costs.query;
    try {
      this.record = await ask("film", { ...query, read: $("of-trace").checked ? "" : read[this.costs.chosen] });
    } catch (error) {
      $("film-status").textContent = error.message;
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
    // No screen reader keeps up with it.
    $("film-status").ariaLive = "off";
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
    $("film-status").ariaLive = "polite";
  }

  // What the cache holds after so many frames: followed from the state before, if that is earlier.
  follow(number) {
    let { state } = this;
    if (!state || state.number > number) state = { number: 0, queue: [], slots: new Map(), seen: new Set(), loads: 0, again: 0, last: null };
    for (; state.number < number; state.number += 1) {
      const [, chunk, slot, loaded, dropped, behind] = this.record.frames[state.number];
      const again = loaded && state.seen.has(chunk);
      state.loads += loaded;
      state.again += again;
      // Who had the slot of the one that comes had to go.
      const collides = dropped.includes(state.slots.get(slot));
      state.last = { chunk, slot, loaded, dropped, collides, colour: loaded ? (again ? "--error" : "--mark") : "--good" };
      if (this.record.room) {
        const goes = new Set([...dropped, chunk]);
        state.queue = state.queue.filter((one) => !goes.has(one));
        state.queue.splice(behind < 0 ? state.queue.length : state.queue.indexOf(behind), 0, chunk);
        state.slots.forEach((one, at) => { if (goes.has(one)) state.slots.delete(at); });
        state.slots.set(slot, chunk);
      }
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
    drawing.cells = state.queue.filter((chunk) => chunk !== state.last?.chunk).flatMap((chunk) => cell(chunk, "--good", 0.8));
    if (state.last) drawing.cells.push(...cell(state.last.chunk, state.last.colour, 1));
    drawing.redraw();
    this.drawSlots();
    const rest = operations > reads.length ? ` The film shows the first ${counted(reads.length, "read")} of ${count(operations)}.` : "";
    $("film-status").textContent = `Read ${count(at + 1)}: ${counted(number, "chunk")} touched so far, ${count(state.loads)} loaded and decoded, ${count(state.again)} of them again. The cache holds ${count(state.queue.length)} of at most ${count(room)}.${state.last ? this.event(state.last, index) : ""}${rest}`;
  }

  // What happened to the last chunk.
  event({ chunk, slot, loaded, dropped, collides }, index) {
    const named = (one) => `[${index(one).join(", ")}]`;
    const { room } = this.record;
    const where = `Chunk ${named(chunk)}${room ? ` (slot ${count(slot)})` : ""}`;
    if (!loaded) return ` ${where} was in the cache.`;
    if (!room) return ` ${where} was loaded; it is larger than the cache.`;
    const why = collides ? (dropped.length > 1 ? "one of them had its slot" : "it had the same slot") : "the cache was full";
    const gone = dropped.length > 3 ? counted(dropped.length, "chunk") : dropped.map(named).join(" and ");
    return ` ${where} was loaded${dropped.length ? `, and ${gone} dropped: ${why}` : ""}.`;
  }

  // The hash table, in which each chunk has one slot; and the queue from which chunks are dropped.
  drawSlots() {
    const canvas = $("slots");
    const ratio = devicePixelRatio || 1;
    const { width, height } = canvas.getBoundingClientRect();
    if (!width) return;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "12px system-ui, sans-serif";
    const { queue, slots, last } = this.follow(this.number);
    const { room, nslots } = this.record;
    const split = room * 22 < width ? height - 46 : height / 2;
    const cells = (top, end, number, text, held) => {
      const side = Math.max(5, Math.min(22, Math.floor(Math.sqrt((width * (end - top - 20)) / number))));
      const across = Math.floor(width / side);
      const most = across * Math.floor((end - top - 20) / side);
      const each = Math.ceil(number / most);
      context.fillStyle = css("--soft");
      context.fillText(text(each), 0, top + 12, width);
      context.strokeStyle = css("--line");
      for (let i = 0; i * each < number; i += 1) {
        context.strokeRect((i % across) * side + 0.5, top + 18.5 + Math.floor(i / across) * side, side - 2, side - 2);
      }
      // The last one is seen wherever it shares a cell.
      for (const [at, chunk] of [...held].sort(([, a], [, b]) => (a === last?.chunk) - (b === last?.chunk))) {
        const i = Math.floor(at / each);
        context.fillStyle = css(chunk === last?.chunk ? last.colour : "--good");
        context.fillRect((i % across) * side, top + 18 + Math.floor(i / across) * side, side - 1, side - 1);
      }
    };
    const several = (each, noun) => (each > 1 ? `, ${counted(each, noun)} a cell` : "");
    cells(0, split, Math.max(1, nslots), (each) => `${counted(nslots, "slot")}, one chunk in each${several(each, "slot")}`, slots);
    cells(split, height, Math.max(1, room), (each) => `Room for ${counted(room, "chunk")}: HDF5 drops from the left, first those that were read in full${several(each, "chunk")}`, queue.entries());
  }
}
