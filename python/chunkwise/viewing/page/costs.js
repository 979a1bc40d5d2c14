// What reads cost, now and with what the sliders try.

const CACHES = [0, ...Array.from({ length: 13 }, (_, k) => 2 ** (k + 18))];

class Costs {
  constructor(on) {
    this.on = on;
    this.ask = settled(() => this.answer());
    $("other").addEventListener("submit", (event) => {
      event.preventDefault();
      const text = $("pattern").value.trim();
      if (text) this.add(text);
    });
    for (const one of document.getElementsByName("how")) one.addEventListener("change", () => this.loop(one.value === "loop"));
    $("reader").addEventListener("change", () => { this.tried.reader = $("reader").value; this.answer().then(() => this.drawSliders()); });
    $("reset").addEventListener("click", () => { this.tryOut(null); });
  }

  async show(number, facts, names, reads, tried = {}) {
    Object.assign(this, { number, facts, names, answered: null, chosen: 0 });
    this.looping = reads.some((one) => one.endsWith("@walk"));
    for (const one of document.getElementsByName("how")) one.checked = (one.value === "loop") === this.looping;
    this.reads = reads.length ? reads : [...facts.reads];
    const { chunk, cache } = tried;
    this.tried = { ...NOTHING_TRIED, ...tried, reader: tried.reader ?? this.tried?.reader ?? "", chunk: chunk ? chunk.split("x").map(Number) : null, cache: cache ? Number(cache) : null };
    $("wrong").textContent = "";
    $("presets").replaceChildren("Add a read: ", ...this.presets().map(({ text, words }) => {
      const made = el("button", { type: "button", title: text }, words);
      made.addEventListener("click", () => this.add(text));
      return made;
    }));
    await this.answer();
    this.drawSliders();
    if (!saved && this.answered?.measuring) {
      const number_now = number;
      drawing.ready().then(() => ask("measure", { dataset: number })).catch(() => {}).finally(() => {
        if (this.number === number_now) this.answer().then(() => this.drawSliders());
      });
    }
  }

  presets() {
    const { names, facts: { shape } } = this;
    const rank = shape.length;
    const axes = shape.map((n, axis) => axis).filter((axis) => shape[axis] > 1).slice(0, 6);
    const always = [{ text: `random:${Math.min(1000, shape.reduce((a, b) => a * b))}`, words: "elements at random" }, { text: "all", words: "everything" }];
    if (axes.length < 2) return always;
    const walks = [
      { text: "series=line:0", words: `series: all of ${names[0]}`, fits: shape[0] > 1 },
      { text: "map=frames", words: `map: ${names.at(-2)} and ${names.at(-1)}`, fits: rank > 2 },
      { text: "row", words: `row: all of ${names.at(-1)}`, fits: shape.at(-1) > 1 },
      { text: `samples:${Math.min(64, shape[0])}`, words: `samples: one ${names[0]} each, at random`, fits: shape[0] > 1 },
    ].filter((one) => one.fits);
    const lines = axes.filter((axis) => axis > 0 && axis < rank - 1).map((axis) => ({ text: `line:${axis}`, words: `lines along ${names[axis]}` }));
    const planes = axes.filter((axis) => axis || rank !== 3).map((axis) => ({ text: `plane:${axis}`, words: `one ${names[axis]} at a time` }));
    return [...walks, ...lines, ...planes, ...always];
  }

  get query() {
    const { chunk, filters, cache, reader } = this.tried;
    return {
      dataset: this.number, read: this.reads, chunk: chunk ? chunk.join("x") : "", filters,
      cache: cache === null ? "" : String(cache), reader,
    };
  }

  // Of blocks: single reads anywhere, or all of them in order.
  loop(on) {
    this.looping = on;
    this.reads = this.reads.map((text) => (on ? walked(text) : text.replace(/@walk(?=\s|$)/, "")));
    this.answer();
  }

  add(text) {
    if (this.looping) text = walked(text);
    const before = [...this.reads];
    if (!this.reads.includes(text)) this.reads.push(text);
    this.chosen = this.reads.indexOf(text);
    this.answer(before);
  }

  // The box that is drawn is one read, in place of the box before.
  box(text) {
    const at = this.reads.findIndex((one) => one.startsWith("box=["));
    if (at < 0) this.reads.push(`box=${text}`);
    else this.reads[at] = `box=${text}`;
    this.chosen = at < 0 ? this.reads.length - 1 : at;
    this.ask();
  }

  async answer(before = null) {
    const query = this.query;
    const turn = (this.turn = (this.turn ?? 0) + 1);
    try {
      const found = await ask("costs", query);
      if (turn !== this.turn) return;
      this.answered = found;
      $("wrong").textContent = "";
      if (before) $("pattern").value = "";
    } catch (error) {
      if (turn !== this.turn) return;
      $("wrong").textContent = error.message;
      if (before) { this.reads = before; this.chosen = Math.min(this.chosen, before.length - 1); }
      return;
    }
    this.draw();
  }

  get isTried() {
    const { chunk, filters, cache } = this.tried;
    return Boolean(chunk || filters || cache !== null);
  }

  draw() {
    const { reads, now, then } = this.answered;
    const tried = this.isTried;
    const { readers } = this.answered;
    $("reader").replaceChildren(...readers.map((one) => el("option", { value: one, selected: one === this.tried.reader }, one || `HDF5 ${file.hdf5} of this machine`)));
    const head = ["Read", "One read asks for", "It touches", "It decodes", "Amplification", "With libhdf5", "With chunkwise"];
    const rows = reads.map((one, i) => this.row(one, i, head, tried));
    $("reads").replaceChildren(
      el("caption", { className: "hidden" }, "What each read costs, by the model"),
      el("thead", {}, el("tr", {}, ...head.map((text) => el("th", { scope: "col" }, text)), el("th", {}, el("span", { className: "hidden" }, "Remove")))),
      el("tbody", {}, ...rows),
    );
    this.say();
    $("measuring").textContent = this.note(now);
    const grows = then.stored_nbytes && now.stored_nbytes ? ` It would take ${size(then.stored_nbytes)} instead of ${size(now.stored_nbytes)}.` : "";
    $("result").textContent = tried ? this.gain(reads) + (then.chunks?.join() !== now.chunks?.join() || then.filters !== now.filters ? grows : "") : "";
    $("lines").hidden = false;
    this.on.changed(this.answered, tried, this.keeps);
    this.keeps = false;
    this.lines();
  }

  // The page as a command: the chosen read comes first, and is chosen when it is opened so.
  lines() {
    if (!this.answered) return;
    const { page, commands, reads } = this.answered;
    const access = [this.chosen, ...page.reads.keys()].filter((i, k) => page.reads[i] && (!k || i !== this.chosen));
    const line = page.begin + access.map((i) => ` --access ${page.reads[i]}`).join("") + page.options + file.trace + this.on.drawn(reads[this.chosen]);
    $("commands").replaceChildren(...[{ what: "This page", line }, ...commands].map(pasteable));
  }

  note(now) {
    const { measuring, obstacle } = this.answered;
    const who = `libhdf5 is ${now.reader}, with a chunk cache of ${size(now.cache_nbytes)} and ${count(now.nslots ?? 0)} slots.`;
    if (file.far) return `${who} Seconds are what requests take, ${seconds(file.far.latency_s)} each, at ${size(file.far.nbytes_per_s)} a second, without decoding: libhdf5 asks for one chunk after another, chunkwise for up to ${count(file.far.in_flight)} at a time, and joins neighbours.`;
    if (measuring) return `${who} Seconds follow when this machine and a sample of the data are measured …`;
    if (obstacle) return `${who} No seconds: ${obstacle}`;
    return `${who} Seconds are predicted by the model of chunkwise advise, from this machine's speed and a sample of the data: for a loop, of all its reads; for a single read, seconds and loads are means over up to 1,000 places, whose chunks may still be in the cache. Bench measures them.`;
  }

  row(one, i, head, tried) {
    const { now, then } = one;
    const per = (row, value) => (row.reads > 1 && value !== null ? el("small", {}, `${seconds(value / row.reads)} each`) : null);
    const asks = (value) => (value === undefined ? null : el("small", {}, `at most ${counted(Math.ceil(value), "request")}`));
    const select = el("button", { type: "button", "aria-pressed": String(i === this.chosen), title: "Show it in the drawing" }, one.text);
    select.addEventListener("click", () => { this.chosen = i; this.draw(); });
    const remove = el("button", { type: "button", title: "Remove this read", "aria-label": `Remove ${one.text}`, hidden: Boolean(saved) || this.reads.length < 2 }, "×");
    remove.addEventListener("click", () => {
      this.reads.splice(i, 1);
      this.chosen = Math.max(0, Math.min(this.chosen, this.reads.length - 1));
      this.answer();
    });
    const what = now.chunks_word ?? (this.answered.now.chunks ? "chunk" : "piece");
    const cells = [
      [select, el("small", {}, one.block ? `${now.reads > 1 ? `${count(now.reads)} reads` : "one read"} of ${elements(one.block)}` : one.words)],
      [counted(now.selected_nbytes / this.facts.itemsize, "element"), el("small", {}, size(now.selected_nbytes))],
      [counted(now.chunks, what), tried ? this.instead(counted(then.chunks, this.answered.then.chunks ? "chunk" : "piece")) : null],
      [size(now.decoded_nbytes), tried ? this.instead(size(then.decoded_nbytes)) : null],
      [times(now.decoded_nbytes / now.selected_nbytes), tried ? this.instead(times(then.decoded_nbytes / then.selected_nbytes)) : null],
      [seconds(now.libhdf5_s), per(now, now.libhdf5_s), this.loads(now, this.answered.now), asks(now.libhdf5_requests),
        ...(tried ? [this.instead(seconds(then.libhdf5_s)), per(then, then.libhdf5_s), this.loads(then, this.answered.then)] : [])],
      [seconds(now.chunkwise_s), per(now, now.chunkwise_s), asks(now.chunkwise_requests),
        ...(tried ? [this.instead(seconds(then.chunkwise_s)), per(then, then.chunkwise_s)] : [])],
    ];
    const made = cells.map((parts, k) => el(k ? "td" : "th", { "data-name": head[k], ...(k ? {} : { scope: "row" }) }, ...parts));
    return el("tr", { className: i === this.chosen ? "chosen" : "" }, ...made, el("td", {}, remove));
  }

  instead(text) { return el("small", { className: "tried" }, `tried: ${text}`); }
  loads({ loads }, { chunks }) {
    if (!chunks) return null;
    const said = loads < 10 && !Number.isInteger(loads) ? `${three(loads)} chunk loads` : counted(Math.round(loads), "chunk load");
    return el("small", {}, loads ? said : "no chunk is kept");
  }

  say() {
    const one = this.answered.reads[this.chosen];
    const { now, block } = one;
    const over = now.decoded_nbytes / now.selected_nbytes;
    const chunks = this.answered.now.chunks
      ? `touches ${counted(now.chunks, "chunk")}: HDF5 decodes ${size(now.decoded_nbytes)} to give you ${size(now.selected_nbytes)}${over > 1.05 ? `, ${times(over)} times as much` : ""}.`
      : `gathers ${counted(now.chunks, "piece")} from the file.`;
    const again = now.reads > 1 && now.loads > 1.5 * this.distinct(now)
      ? ` Over all ${count(now.reads)} reads, each chunk is decoded ${times(now.loads / this.distinct(now))} times, because the cache does not hold it until it is needed again.` : "";
    const what = block ? `One read of ${elements(block)}` : "One of these reads";
    $("said").textContent = `${one.text}: ${what} ${chunks}${again}`;
  }
  distinct(row) {
    const grid = this.answered.now.grid;
    return grid ? Math.min(row.touches, grid.reduce((a, b) => a * b, 1)) : row.touches;
  }

  gain(reads) {
    const total = (key) => reads.reduce((sum, one) => sum + one[key].libhdf5_s, 0);
    if (reads.some((one) => one.now.libhdf5_s === null)) return "";
    const [before, after] = [total("now"), total("then")];
    return before >= after
      ? `All these reads together: ${seconds(after)} instead of ${seconds(before)} with libhdf5, ${times(before / after)} times as fast.`
      : `All these reads together: ${seconds(after)} instead of ${seconds(before)} with libhdf5, ${times(after / before)} times as slow.`;
  }

  // --- what is tried ---

  tryOut(tried, forgets = true) {
    this.tried = { ...NOTHING_TRIED, ...tried, reader: this.tried.reader };
    this.keeps = !forgets;
    this.drawSliders();
    this.ask();
  }

  drawSliders() {
    if (saved || !this.answered) return;
    const { now, filters } = this.answered;
    const parts = [];
    const slider = (label, list, value, shown, changed) => {
      const output = el("output", {}, shown(value));
      const at = list.reduce((best, one, i) => (Math.abs(one - value) < Math.abs(list[best] - value) ? i : best), 0);
      const made = el("input", { type: "range", min: 0, max: list.length - 1, value: at, id: `s${parts.length}` });
      made.setAttribute("aria-valuetext", shown(value));
      made.addEventListener("input", () => {
        const chosen = list[Number(made.value)];
        output.textContent = shown(chosen);
        made.setAttribute("aria-valuetext", shown(chosen));
        changed(chosen);
        this.ask();
      });
      parts.push(el("label", { htmlFor: made.id }, label), made, output);
    };
    if (this.facts.layout === "chunked" || now.chunks) {
      this.facts.shape.forEach((extent, axis) => {
        const chunk = () => this.tried.chunk ?? now.chunks;
        slider(`Chunk along ${this.names[axis]}`, sides(extent, now.chunks[axis]), chunk()[axis], (n) => `${count(n)} of ${count(extent)}`, (n) => {
          const next = chunk().map((side, i) => (i === axis ? n : side));
          this.tried.chunk = next.join() === now.chunks.join() ? null : next;
        });
      });
      const select = el("select", { id: "filter" }, ...filters.map((one) => el("option", { value: one, selected: one === (this.tried.filters || now.filters) }, one === "none" ? "no filter" : one)));
      select.addEventListener("change", () => { this.tried.filters = select.value === now.filters ? "" : select.value; this.ask(); });
      parts.push(el("label", { htmlFor: "filter" }, "Filters"), select);
    }
    const caches = [...new Set([...CACHES, now.cache_nbytes])].sort((a, b) => a - b);
    if (now.chunks || this.tried.chunk) slider("Chunk cache of libhdf5", caches, this.tried.cache ?? now.cache_nbytes, (n) => (n ? size(n) : "none"), (n) => { this.tried.cache = n === now.cache_nbytes ? null : n; });
    $("sliders").replaceChildren(...parts);
    $("cure").hidden = false;
  }
}

const elements = (block) => (block.every((n) => n === 1) ? "an element" : `${lengths(block)} elements`);

// A block, of which the whole dataset is read one after the other; what has an order keeps it.
function walked(text) {
  const what = text.replace(/^[^=[]*=/, "");
  return /[[@]|^(all\b(?!,)|random|samples|cells|list)/.test(what) ? text : text.replace(/(\s+weight.*)?$/, "@walk$1");
}

// Lengths that a chunk may have along a dimension, about four for each doubling.
function sides(extent, present) {
  const found = new Set([1, extent, present]);
  for (let n = 1; n < extent; n = Math.max(n + 1, Math.round(n * 1.19))) found.add(n);
  for (let parts = 2; parts < 9; parts += 1) found.add(Math.ceil(extent / parts));
  return [...found].filter((n) => n >= 1 && (n <= extent || n === present)).sort((a, b) => a - b);
}
