// The chunks of two dimensions on a canvas: tiles from the server, and what is laid over them.

const MARGIN = { left: 64, bottom: 34, top: 8, right: 8 };
const RAMPS = {
  light: [[237, 244, 250], [158, 202, 225], [66, 146, 198], [8, 81, 156], [8, 30, 88]],
  dark: [[24, 44, 66], [30, 80, 130], [45, 130, 190], [120, 190, 230], [225, 243, 255]],
};
const CELL_PX = 1.5;
const TILES_KEPT = 160;
const dark = matchMedia("(prefers-color-scheme: dark)");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A colour from 0 (least) to 1 (most).
function shade(part) {
  const ramp = dark.matches ? RAMPS.dark : RAMPS.light;
  const at = Math.min(1, Math.max(0, part)) * (ramp.length - 1);
  const low = Math.min(ramp.length - 2, Math.floor(at));
  return ramp[low].map((one, i) => Math.round(one + (ramp[low + 1][i] - one) * (at - low)));
}
const never = () => (dark.matches ? [60, 40, 40] : [245, 225, 220]);

// A colour between which others stay visible.
function stripes(context, colour) {
  const side = 14;
  const made = new OffscreenCanvas(side, side);
  const lines = made.getContext("2d");
  lines.strokeStyle = colour;
  lines.lineWidth = 1.5;
  for (const x of [-side, 0, side]) { lines.moveTo(x, side); lines.lineTo(x + side, 0); }
  lines.stroke();
  return context.createPattern(made, "repeat");
}

// All areas of ranges down and across, as far as they look different.
const MOST_AREAS = 4000;
function products(down, across) {
  const found = [];
  for (const [a, c] of down) {
    for (const [b, d] of across) {
      if (found.length === MOST_AREAS) return found;
      found.push([a, b, c, d]);
    }
  }
  return found;
}

class Drawing {
  constructor(canvas, on) {
    Object.assign(this, { canvas, on, tiles: new Map(), waiting: new Set(), boxes: [], wanted: [], cells: null, tried: null, box: null, idle: [] });
    this.context = canvas.getContext("2d");
    this.moving = false;
    new ResizeObserver(() => this.redraw()).observe(canvas);
    dark.addEventListener("change", () => { this.tiles.forEach((one) => { one.image = null; }); this.redraw(); });
    this.listen();
  }

  // `grid`: shape, chunk and grid of the whole dataset; null where the dataset has no chunks.
  show(number, facts, grid, vertical, horizontal, at) {
    const fresh = this.number !== number || this.vertical !== vertical || this.horizontal !== horizontal;
    Object.assign(this, { number, grid, vertical, horizontal, at });
    const chunk = grid ? grid.chunk : facts.shape;
    this.shape = facts.shape;
    this.chunk = chunk;
    this.raw_nbytes = chunk.reduce((a, b) => a * b, facts.itemsize);
    const of = (list, axis) => (axis < 0 ? 1 : list[axis]);
    this.extent = [of(facts.shape, vertical), of(facts.shape, horizontal)];
    this.side = [of(chunk, vertical), of(chunk, horizontal)];
    this.count = this.extent.map((n, i) => Math.ceil(n / this.side[i]));
    if (fresh) {
      this.cursor = null;
      this.all();
    }
    this.redraw();
  }

  all() {
    this.from = [0, 0];
    this.seen = [...this.extent];
    this.clamp();
  }

  // What is seen, as ranges of elements down and across.
  get ranges() { return this.from.map((from, i) => [Math.floor(from), Math.min(this.extent[i], Math.ceil(from + this.seen[i]))]); }
  see(ranges) {
    [...ranges].reverse().forEach(([begin, end], k) => {
      const i = 1 - k;
      this.from[i] = begin;
      this.seen[i] = Math.min(this.extent[i], end - begin);
    });
    this.clamp();
  }

  // --- between elements and pixels ---

  get plot() {
    const { width, height } = this.canvas.getBoundingClientRect();
    return { x: MARGIN.left, y: MARGIN.top, w: Math.max(1, width - MARGIN.left - MARGIN.right), h: Math.max(1, height - MARGIN.top - MARGIN.bottom) };
  }
  scale(plot) { return [plot.h / this.seen[0], plot.w / this.seen[1]]; }
  place(plot, y, x) {
    const [sy, sx] = this.scale(plot);
    return [plot.y + (y - this.from[0]) * sy, plot.x + (x - this.from[1]) * sx];
  }
  element(plot, py, px) {
    const [sy, sx] = this.scale(plot);
    const found = [this.from[0] + (py - plot.y) / sy, this.from[1] + (px - plot.x) / sx];
    return found.map((one, i) => Math.min(this.extent[i] - 1, Math.max(0, Math.floor(one))));
  }
  indexOf(element) {
    const index = this.at.slice();
    if (this.vertical >= 0) index[this.vertical] = Math.floor(element[0] / this.side[0]);
    index[this.horizontal] = Math.floor(element[1] / this.side[1]);
    return index;
  }

  zoom(factor, about = [this.from[0] + this.seen[0] / 2, this.from[1] + this.seen[1] / 2]) {
    const least = this.side.map((side, i) => Math.min(this.extent[i], Math.max(side * 2, 4)));
    for (const i of [0, 1]) {
      const now = Math.min(this.extent[i], Math.max(least[i], this.seen[i] * factor));
      const part = (about[i] - this.from[i]) / this.seen[i];
      this.seen[i] = now;
      this.from[i] = about[i] - part * now;
    }
    this.clamp();
  }
  clamp() {
    for (const i of [0, 1]) this.from[i] = Math.min(this.extent[i] - this.seen[i], Math.max(0, this.from[i]));
    this.on.seen();
    this.redraw();
  }

  // --- drawing ---

  redraw() {
    if (this.shape && !this.pending) {
      this.pending = requestAnimationFrame(() => { this.pending = 0; this.draw(); });
    }
  }

  draw() {
    const ratio = devicePixelRatio || 1;
    const { width, height } = this.canvas.getBoundingClientRect();
    if (!width) { this.settle(); return; }
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const context = this.context;
    const plot = this.plot;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.drawAxes(context, plot);
    context.save();
    context.beginPath();
    context.rect(plot.x, plot.y, plot.w, plot.h);
    context.clip();
    const [y0, x0] = this.place(plot, 0, 0);
    const [y1, x1] = this.place(plot, ...this.extent);
    context.beginPath();
    context.rect(x0, y0, x1 - x0, y1 - y0);
    context.clip();
    if (this.colour === "values") this.drawPicture(context, plot);
    else if (this.grid) this.drawTiles(context, plot);
    else {
      context.fillStyle = `rgb(${shade(0.35)})`;
      context.fillRect(x0, y0, x1 - x0, y1 - y0);
    }
    if (this.cells) this.drawCells(context, plot);
    this.drawLines(context, plot, this.side, css("--ground"), []);
    if (this.tried) this.drawLines(context, plot, this.tried, css("--cure"), [5, 3], 2);
    if (!this.cells) this.drawRead(context, plot);
    if (this.cursor) this.outline(context, plot, this.chunkRect(this.cursor), css("--ink"), 2);
    if (this.box) this.outline(context, plot, this.box, css("--ink"), 2, [4, 3]);
    context.restore();
    this.canvas.dataset.drawn = this.waiting.size ? "" : "all";
    if (!this.waiting.size) this.settle();
  }

  // Wait until all is drawn.
  ready() { return this.pending || this.waiting.size ? new Promise((done) => { this.idle.push(done); }) : Promise.resolve(); }
  settle() { this.idle.splice(0).forEach((done) => done()); }

  drawAxes(context, plot) {
    context.fillStyle = css("--soft");
    context.strokeStyle = css("--line");
    context.font = "12px system-ui, sans-serif";
    context.strokeRect(plot.x - 0.5, plot.y - 0.5, plot.w + 1, plot.h + 1);
    const name = (axis) => this.names[axis];
    const ticks = (i, length) => {
      const step = [1, 2, 5, 10, 20, 50].map((n) => n * 10 ** Math.floor(Math.log10(Math.max(1, this.seen[i] / 5)))).find((n) => this.seen[i] / n <= Math.max(2, length / 80)) ?? this.seen[i];
      const first = Math.ceil(this.from[i] / step) * step;
      return Array.from({ length: 40 }, (_, k) => first + k * step).filter((at) => at <= this.from[i] + this.seen[i]);
    };
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const at of ticks(1, plot.w)) {
      const x = this.place(plot, 0, at)[1];
      if (x < plot.x + plot.w - 60) context.fillText(at.toLocaleString("en"), Math.max(x, plot.x + 8), plot.y + plot.h + 4);
    }
    context.textAlign = "right";
    context.fillText(`${name(this.horizontal)} →`, plot.x + plot.w, plot.y + plot.h + 18);
    if (this.vertical < 0) return;
    context.textBaseline = "middle";
    for (const at of ticks(0, plot.h)) {
      const y = this.place(plot, at, 0)[0];
      if (y < plot.y + plot.h - 4) context.fillText(at.toLocaleString("en"), plot.x - 5, Math.max(y, plot.y + 6));
    }
    context.save();
    context.translate(11, plot.y + plot.h);
    context.rotate(-Math.PI / 2);
    context.textAlign = "left";
    context.fillText(`← ${name(this.vertical)}`, 0, 0);
    context.restore();
  }

  // From far away, a cell stands for many chunks.
  levels(plot) {
    return this.scale(plot).map((px, i) => Math.max(0, Math.ceil(Math.log2(CELL_PX / (px * this.side[i])))));
  }

  drawTiles(context, plot) {
    const side = this.grid.side;
    const levels = saved?.views[this.number].levels ?? this.levels(plot);
    const each = levels.map((level, i) => side * 2 ** level * this.side[i]);
    const first = each.map((n, i) => Math.floor(Math.max(0, this.from[i]) / n));
    const last = each.map((n, i) => Math.floor(Math.min(this.extent[i] - 1e-9, this.from[i] + this.seen[i]) / n));
    context.imageSmoothingEnabled = false;
    for (let ty = first[0]; ty <= last[0]; ty += 1) {
      for (let tx = first[1]; tx <= last[1]; tx += 1) {
        const tile = this.tile(levels, ty, tx);
        if (!tile) continue;
        const cells = [ty, tx].map((t, i) => Math.min(side, Math.ceil(this.count[i] / 2 ** levels[i]) - t * side));
        const [y0, x0] = this.place(plot, ty * each[0], tx * each[1]);
        const [y1, x1] = this.place(plot, ty * each[0] + cells[0] * 2 ** levels[0] * this.side[0], tx * each[1] + cells[1] * 2 ** levels[1] * this.side[1]);
        context.drawImage(tile, 0, 0, cells[1], cells[0], x0, y0, x1 - x0, y1 - y0);
      }
    }
  }

  // Each point stands for as many elements as lie to the next.
  drawPicture(context, plot) {
    const image = this.picture?.drawn;
    if (!image) return;
    const { rows, columns, steps } = this.picture.found;
    const [y0, x0] = this.place(plot, 0, 0);
    const [y1, x1] = this.place(plot, rows * steps[0], columns * steps[1]);
    context.imageSmoothingEnabled = false;
    context.drawImage(image, x0, y0, x1 - x0, y1 - y0);
  }

  get what() { return ["place", "mask"].includes(this.colour) ? this.colour : "stored"; }

  tile(levels, ty, tx) {
    const query = { dataset: this.number, vertical: this.vertical, horizontal: this.horizontal, at: this.at.join(), what: this.what, tile: [...levels, ty, tx].join() };
    const key = JSON.stringify(query);
    const found = this.tiles.get(key);
    if (found?.failed) return null;
    if (found) {
      this.tiles.delete(key);
      this.tiles.set(key, found);
      if (!found.image || found.colour !== this.colour) {
        found.image = this.painted(found.values);
        found.colour = this.colour;
      }
      return found.image;
    }
    if (!this.waiting.has(key)) {
      this.waiting.add(key);
      ask("tile", query).then((values) => {
        this.tiles.set(key, { values });
        while (this.tiles.size > TILES_KEPT) this.tiles.delete(this.tiles.keys().next().value);
      }).catch(() => { this.tiles.set(key, { failed: true }); }).finally(() => { this.waiting.delete(key); this.redraw(); });
    }
    return null;
  }

  // From 0 to 1, by the range of the dataset.
  part(value) {
    const range = this.grid.ranges[this.what];
    if (!range) return 0;
    const of = this.colour === "ratio" ? (n) => Math.log(this.raw_nbytes / n) : (n) => n;
    if (this.colour === "mask") return value;
    const ends = range.map((n) => of(Math.max(n, 1)));
    if (this.colour === "ratio") ends.reverse();
    if (ends[0] === ends[1]) return 0.4;
    return (of(Math.max(value, 1)) - ends[0]) / (ends[1] - ends[0]);
  }

  painted(values) {
    const side = this.grid.side;
    const image = new ImageData(side, side);
    const absent = never();
    for (let i = 0; i < values.length; i += 1) {
      const colour = Number.isNaN(values[i]) ? absent : shade(this.part(values[i]));
      image.data.set([...colour, 255], 4 * i);
    }
    const made = new OffscreenCanvas(side, side);
    made.getContext("2d").putImageData(image, 0, 0);
    return made;
  }

  drawLines(context, plot, side, colour, dash, width = 1) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.beginPath();
    const scale = this.scale(plot);
    for (const i of [0, 1]) {
      if (side[i] * scale[i] < 5) continue;
      const end = Math.min(this.extent[i], this.from[i] + this.seen[i]);
      for (let at = Math.ceil(this.from[i] / side[i]) * side[i]; at <= end; at += side[i]) {
        const [y, x] = this.place(plot, at, at);
        if (i) { context.moveTo(x, plot.y); context.lineTo(x, plot.y + plot.h); }
        else { context.moveTo(plot.x, y); context.lineTo(plot.x + plot.w, y); }
      }
    }
    context.stroke();
    context.setLineDash([]);
  }

  // Rectangles are [first y, first x, end y, end x] in elements.
  rect(plot, [a, b, c, d]) {
    const [y0, x0] = this.place(plot, a, b);
    const [y1, x1] = this.place(plot, c, d);
    return [x0, y0, Math.max(2, x1 - x0), Math.max(2, y1 - y0)];
  }
  outline(context, plot, area, colour, width, dash = []) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.strokeRect(...this.rect(plot, area));
    context.setLineDash([]);
  }
  chunkRect(index) {
    return [...index.map((k, i) => k * this.side[i]), ...index.map((k, i) => Math.min(this.extent[i], (k + 1) * this.side[i]))];
  }

  // What a read wants, and the chunks that it touches.
  drawRead(context, plot) {
    const mark = css("--mark");
    const striped = stripes(context, mark);
    let touched = 0;
    for (const { down, across, given } of this.wanted) {
      // What has no chunks is not decoded.
      const chunks = this.grid ? products(this.runs(down, 0), this.runs(across, 1)) : [];
      for (const area of chunks) {
        touched += [0, 1].reduce((n, i) => n * Math.ceil((area[i + 2] - area[i]) / this.side[i]), 1);
        context.fillStyle = striped;
        context.fillRect(...this.rect(plot, area));
        this.outline(context, plot, area, mark, 3);
      }
      if (given) {
        for (const area of products(down, across)) {
          this.outline(context, plot, area, css("--ground"), 5);
          this.outline(context, plot, area, css("--ink"), 1.5);
        }
      }
    }
    this.canvas.dataset.touched = touched;
  }

  // Ranges of elements as ranges of whole chunks, those that meet as one.
  runs(ranges, i) {
    const found = [];
    for (const [begin, end] of ranges) {
      const from = Math.floor(begin / this.side[i]) * this.side[i];
      const to = Math.min(this.extent[i], Math.ceil(end / this.side[i]) * this.side[i]);
      if (found.length && from <= found.at(-1)[1]) found.at(-1)[1] = Math.max(found.at(-1)[1], to);
      else found.push([from, to]);
    }
    return found;
  }

  drawCells(context, plot) {
    for (const { index, colour, alpha } of this.cells) {
      context.globalAlpha = alpha;
      context.fillStyle = colour;
      context.fillRect(...this.rect(plot, this.chunkRect(index)));
    }
    context.globalAlpha = 1;
    for (const { down, across, given } of this.wanted) {
      if (given) products(down, across).forEach((area) => this.outline(context, plot, area, css("--ink"), 2));
    }
  }

  // --- mouse, fingers and keys ---

  listen() {
    const { canvas } = this;
    let begun = null;
    const where = (event) => {
      const box = canvas.getBoundingClientRect();
      return this.element(this.plot, event.clientY - box.top, event.clientX - box.left);
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.shape || event.button > 1) return;
      canvas.setPointerCapture(event.pointerId);
      const moves = this.moving || event.shiftKey || event.button === 1;
      begun = { moves, at: where(event), y: event.clientY, x: event.clientX, from: [...this.from] };
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.shape) return;
      const here = where(event);
      if (!begun) {
        this.on.hover(this.indexOf(here));
      } else if (begun.moves) {
        const scale = this.scale(this.plot);
        this.from = [begun.from[0] - (event.clientY - begun.y) / scale[0], begun.from[1] - (event.clientX - begun.x) / scale[1]];
        this.clamp();
      } else {
        this.box = this.between(begun.at, here);
        this.on.box(this.box, false);
        this.redraw();
      }
    });
    canvas.addEventListener("pointerup", (event) => {
      if (begun && !begun.moves) this.on.box(this.between(begun.at, where(event)), true);
      begun = null;
      this.box = null;
      this.redraw();
    });
    canvas.addEventListener("pointercancel", () => { begun = null; this.box = null; this.redraw(); });
    canvas.addEventListener("wheel", (event) => {
      if (!this.shape || !(event.ctrlKey || document.activeElement === canvas)) return;
      event.preventDefault();
      this.zoom(1.0015 ** event.deltaY, where(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  between(one, other) {
    return [0, 1].map((i) => Math.min(one[i], other[i])).concat([0, 1].map((i) => Math.max(one[i], other[i]) + 1));
  }

  key(event) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "+" || event.key === "=") this.zoom(0.7);
    else if (event.key === "-") this.zoom(1 / 0.7);
    else if (event.key === "0") this.all();
    else if (step && this.shape) {
      const before = this.cursor ?? [0, 0];
      this.cursor = before.map((k, i) => Math.min(this.count[i] - 1, Math.max(0, k + (this.cursor ? step[i] : 0))));
      if (!event.shiftKey || !this.anchor) this.anchor = event.shiftKey ? before : this.cursor;
      const area = this.chunkRect(this.cursor);
      for (const i of [0, 1]) {
        if (area[i] < this.from[i]) this.from[i] = area[i];
        if (area[i + 2] > this.from[i] + this.seen[i]) this.from[i] = area[i + 2] - this.seen[i];
      }
      this.on.hover(this.indexOf(area));
      if (event.shiftKey) {
        const far = this.chunkRect(this.anchor);
        this.on.box([0, 1].map((i) => Math.min(area[i], far[i])).concat([2, 3].map((i) => Math.max(area[i], far[i]))), true);
      }
      this.clamp();
    } else return;
    event.preventDefault();
  }
}
