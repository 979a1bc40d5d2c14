// The tree, the chosen dataset, and what ties the parts together.

const file = read("facts");
const objects = file.objects;
const MOST_SHOWN = 400;
let findings = file.findings;
let chosen = null;
let facts = null;
let names = [];
let grid = null;
let view = { vertical: -1, horizontal: 0, at: [] };

const drawing = new Drawing($("canvas"), { hover: settled(hover, 40), box: boxed, seen: settled(() => costs.lines(), 100) });
const costs = new Costs({ changed: costsChanged, drawn });
const work = new Work(costs);
const picture = new Picture(() => { legend(); drawing.redraw(); });
drawing.picture = picture;
const film = new Film(drawing, costs, goTo);

// --- the file ---

function about() {
  document.title = `${file.file} – chunkwise view`;
  $("file").textContent = file.file;
  const datasets = objects.filter((one) => one.kind === "dataset").length;
  const parts = [size(file.nbytes), counted(datasets, "dataset"), `read by HDF5 ${file.hdf5}`];
  if (file.metadata) {
    const { list_requests, blocks } = file.metadata;
    parts.push(`listing it from far away takes ${counted(list_requests, "request")}, or ${count(blocks)} with blocks of 1 MiB`);
  }
  if (file.far) parts.push(`far away: ${seconds(file.far.latency_s)} a request${file.far.requests ? `; ${counted(file.far.requests, "request")} listed it` : ""}`);
  $("about").textContent = `${parts.join(" · ")}.`;
}

const worst = (number) => findings.filter((one) => one.object === number);
const badge = (severity, text) => el("span", { className: `badge ${severity}` }, text);

function tree() {
  const text = $("find").value.toLowerCase();
  let rows = objects.map((one, number) => ({ one, number, found: worst(number) })).filter(({ one }) => one.path.toLowerCase().includes(text));
  const order = $("order").value;
  const nbytes = ({ one }) => one.stored_nbytes ?? one.logical_nbytes ?? -1;
  const rank = ({ found }) => Math.max(-1, ...found.map((one) => one.rank));
  if (order !== "file") rows = rows.filter(({ one, found }) => one.kind !== "group" || found.length);
  if (order === "worst") rows.sort((a, b) => rank(b) - rank(a) || nbytes(b) - nbytes(a));
  if (order === "largest") rows.sort((a, b) => nbytes(b) - nbytes(a));
  $("number").textContent = `(${count(rows.length)})`;
  $("tree").replaceChildren(...rows.slice(0, MOST_SHOWN).map(treeRow));
  $("more").textContent = rows.length > MOST_SHOWN ? `${count(rows.length - MOST_SHOWN)} more: find them by name.` : "";
}

function treeRow({ one, number, found }) {
  const of = one.kind === "dataset"
    ? `${lengths(one.shape)} ${one.dtype}, ${size(one.stored_nbytes)}${one.ratio ? `, ratio ${three(one.ratio)}` : ""}`
    : one.kind.replace("_", " ");
  const most = found.reduce((best, each) => (best && best.rank >= each.rank ? best : each), null);
  const parts = [el("b", {}, one.path), most ? " " : null, most ? badge(most.severity, `${most.severity}${found.length > 1 ? ` and ${found.length - 1} more` : ""}`) : null, el("small", {}, of)];
  const button = el("button", { type: "button", disabled: one.kind !== "dataset" || Boolean(saved && !(JSON.stringify(["dataset", { dataset: number }]) in saved.answers)), "aria-current": String(number === chosen) }, ...parts);
  button.addEventListener("click", () => choose(number).catch(failed));
  return el("li", {}, button);
}

function finding(one) {
  return el("div", { className: `finding ${one.severity}` },
    el("span", { className: "badge" }, `${one.severity}: ${one.code}`),
    el("p", {}, one.summary),
    one.fixes.length ? el("details", {}, el("summary", {}, "What helps"), el("ul", { className: "commands" }, ...one.fixes.map(pasteable))) : null);
}

function ofFile() {
  const found = findings.filter((one) => one.object === null);
  $("of-file").hidden = !found.length && !file.commands.length && !file.lines.length;
  $("file-number").textContent = found.length ? `(${found.length})` : "";
  $("file-findings").replaceChildren(...found.map(finding), el("ul", { className: "commands" }, ...file.lines.map(pasteable)),
    ...(file.commands.length ? [el("p", {}, "One command mends all that a layout mends:"), el("ul", { className: "commands" }, pasteable(file.commands[0]))] : []));
}

// --- a dataset ---

async function choose(number, reads = file.traced[number] ?? [], tried = {}, drawn = {}) {
  chosen = number;
  costs.answered = null;
  try {
    facts = await ask("dataset", { dataset: number });
  } finally {
    tree();
  }
  if (chosen !== number) return;
  const rank = facts.shape?.length ?? 0;
  names = Array.from({ length: rank }, (_, axis) => facts.dimensions[axis]?.split("/").at(-1) || `dimension ${axis}`);
  $("name").textContent = facts.path;
  $("stored").textContent = stored();
  ofDataset();
  for (const id of ["drawn", "costs", "cure", "film", "lines", "bytes"]) $(id).hidden = true;
  const drawable = rank > 0 && !facts.shape.includes(0) && ["chunked", "contiguous"].includes(facts.layout) && !facts.unlisted;
  $("why-not").hidden = drawable;
  if (!drawable) {
    $("why-not").textContent = facts.unlisted ?? (rank && !facts.shape.includes(0) ? `Its layout is ${facts.layout}: there are no chunks to draw.` : "It has no elements along dimensions: there is nothing to draw.");
    bytes().catch(() => {});
    return;
  }
  grid = facts.chunks ? await ask("chunks", { dataset: number }) : null;
  if (chosen !== number) return;
  $("drawn").hidden = $("costs").hidden = false;
  // The two dimensions with the most chunks, where there is the most to see.
  const of = grid ? grid.grid : facts.shape;
  const long = facts.shape.map((n, axis) => axis).filter((axis) => facts.shape[axis] > 1);
  const [first, second] = [...long].sort((a, b) => of[b] - of[a] || facts.shape[b] - facts.shape[a]);
  const shown = second === undefined ? [-1, first ?? rank - 1] : [Math.min(first, second), Math.max(first, second)];
  view = { vertical: shown[0], horizontal: shown[1], at: facts.shape.map(() => 0), ...saved?.views[number], ...drawn, usual: shown.join(), follows: !drawn.at };
  if (drawn.colour) $("colour").value = drawn.colour;
  $("cells").textContent = grid ? "Each cell is a chunk: HDF5 reads and decodes it whole." : "It has no chunks: HDF5 reads the bytes that are wanted, piece by piece.";
  drawing.names = names;
  drawing.colour = $("colour").value;
  drawing.wanted = [];
  drawing.tried = null;
  look();
  if (drawn.zoom) drawing.see(drawn.zoom);
  $("traced").hidden = !(number in file.traced);
  $("of-trace").checked = number in file.traced;
  await costs.show(number, facts, names, saved?.views[number].reads ?? reads, tried);
  // After what is looked at first.
  bytes().catch(() => {});
}

function stored() {
  const { chunks } = facts;
  const parts = [`${lengths(facts.shape)} elements of ${facts.dtype}`];
  if (facts.logical_nbytes) parts.push(`${size(facts.logical_nbytes)}, stored in ${size(facts.stored_nbytes)}${facts.ratio ? ` (ratio ${three(facts.ratio)})` : ""}`);
  if (chunks) parts.push(`${counted(chunks.grid, "chunk")} of ${lengths(chunks.shape)}, ${size(chunks.nbytes)} each${chunks.allocated < chunks.grid ? `; ${count(chunks.grid - chunks.allocated)} never written` : ""}`);
  else parts.push(facts.layout);
  parts.push(facts.filters === "none" ? "no filter" : `filters ${facts.filters}`);
  return `${parts.join(" · ")}.`;
}

function ofDataset() {
  const found = worst(chosen);
  $("findings").replaceChildren(...(found.length ? found.map(finding) : [el("p", { className: "hint" }, file.sampled ? "No findings. A sound layout can still be slow for your reads: see what they cost below." : "")]));
}

function axes() {
  const parts = [];
  const select = (label, value, none, changed) => {
    const made = el("select", {}, ...names.map((name, axis) => el("option", { value: axis, selected: axis === value }, name)));
    if (none) made.prepend(el("option", { value: -1, selected: value < 0 }, "one row"));
    made.addEventListener("change", () => { changed(Number(made.value)); look(); });
    parts.push(el("label", {}, label, made));
  };
  if (names.length > 1) {
    select("Down", view.vertical, true, (axis) => { if (axis === view.horizontal) view.horizontal = view.vertical >= 0 ? view.vertical : (axis + 1) % names.length; view.vertical = axis; });
    select("Across", view.horizontal, false, (axis) => { if (axis === view.vertical) view.vertical = view.horizontal; view.horizontal = axis; });
  }
  names.forEach((name, axis) => {
    if (axis === view.vertical || axis === view.horizontal || facts.shape[axis] < 2) return;
    const said = () => `${count(view.at[axis])}${grid && grid.grid[axis] > 1 ? ` (chunk ${count(Math.floor(view.at[axis] / grid.chunk[axis]) + 1)} of ${count(grid.grid[axis])})` : ""}`;
    const output = el("output", {}, said());
    const made = el("input", { type: "range", min: 0, max: facts.shape[axis] - 1, value: view.at[axis] });
    made.addEventListener("input", () => {
      view.at[axis] = Number(made.value);
      view.follows = false;
      output.textContent = said();
      show();
      drawFirst();
    });
    parts.push(el("label", {}, `At ${name}`, made, output));
  });
  $("axes").replaceChildren(...parts);
  $("axes").hidden = saved || !parts.length;
}

function look() {
  axes();
  show();
  legend();
  drawFirst();
}

function show() {
  drawing.show(chosen, facts, grid, view.vertical, view.horizontal, view.at.map((i, axis) => (grid ? Math.floor(i / grid.chunk[axis]) : 0)));
  picturing();
  costs.lines();
}

// An element of the plane.
function place() {
  return view.at.map((i, axis) => (axis === view.vertical || axis === view.horizontal ? 0 : i));
}

// The element at which a read begins.
const begins = (one) => one.first[0][0];

// What is drawn, as options of the command; what would be drawn without them is left out.
function drawn(first) {
  const shown = [view.vertical, view.horizontal];
  let said = "";
  if (shown.join() !== view.usual) said += ` --draw ${shown.filter((axis) => axis >= 0).join()}`;
  const home = first ? begins(first) : view.at.map(() => 0);
  if (view.at.some((k, axis) => !shown.includes(axis) && k !== home[axis])) said += ` --at ${place().join()}`;
  if (drawing.colour !== "stored") said += ` --colour ${drawing.colour}`;
  const { ranges, extent } = drawing;
  const seen = ranges.filter((_, i) => i || view.vertical >= 0);
  if (ranges.some(([begin, end], i) => begin > 0 || end < extent[i])) said += ` --zoom ${seen.map((one) => one.join(":")).join()}`;
  return said;
}

function picturing() {
  if (drawing.colour !== "values") return;
  picture.show({ dataset: chosen, at: place().join(), shown: [view.vertical, view.horizontal].join() });
}

function ramp(paint) {
  const made = el("canvas", { width: 128, height: 1 });
  paint(made.getContext("2d"));
  return made;
}

function key(colour, text) {
  const made = ramp((context) => { context.fillStyle = colour; context.fillRect(0, 0, 128, 1); });
  made.className = "key";
  return el("span", {}, made, text);
}

function legend() {
  const parts = [];
  const range = grid?.ranges[drawing.what];
  if (drawing.colour === "values") {
    const { found, error } = picture;
    if (!found) parts.push(el("span", {}, error || "reading some of the values …"));
    else {
      if (found.range) parts.push(el("span", {}, found.range[0].toPrecision(4), ramp((context) => { for (let x = 0; x < 128; x += 1) { context.fillStyle = `rgb(${GREYS(x / 127)})`; context.fillRect(x, 0, 1, 1); } }), found.range[1].toPrecision(4)));
      found.special.forEach((level) => parts.push(key(...ABSENT[level])));
      parts.push(el("span", {}, `${count(found.rows)}x${count(found.columns)} of the elements`));
    }
  } else if (drawing.colour === "mask") {
    parts.push(key(`rgb(${shade(0)})`, "all filters applied"));
    if (range) parts.push(key(`rgb(${shade(1)})`, "a filter was skipped"));
  } else if (range) {
    const ends = drawing.colour === "ratio" ? range.map((n) => three(drawing.raw_nbytes / Math.max(1, n))).reverse()
      : drawing.colour === "place" ? ["begin", "end of its bytes"] : range.map(size);
    parts.push(el("span", {}, ends[0], ramp((context) => { for (let x = 0; x < 128; x += 1) { context.fillStyle = `rgb(${shade(x / 127)})`; context.fillRect(x, 0, 1, 1); } }), ends[1]));
  }
  if (facts.chunks && facts.chunks.allocated < facts.chunks.grid) parts.push(key(`rgb(${never()})`, "never written"));
  if (grid) parts.push(key(css("--mark"), drawing.cells ? "loaded now" : "striped: decoded for the read"));
  if (drawing.cells) parts.push(key(css("--good"), "in the cache"), key(css("--error"), "loaded again"));
  else parts.push(key(css("--ground"), "what it gives you"));
  if (drawing.tried) parts.push(key(css("--cure"), "chunks that are tried (dashed)"));
  $("legend").replaceChildren(...parts);
}

// The file from its first byte to its last: this dataset's data, that of others, metadata, the rest.
async function bytes() {
  const number = chosen;
  const found = await ask("bytes", { dataset: number });
  if (chosen !== number) return;
  $("bytes").hidden = false;
  drawStrip.found = found;
  drawStrip();
  const share = (list) => list.reduce((sum, one) => sum + one, 0) / list.length;
  const held = found.own.map((one, i) => [one, i]).filter(([one]) => one > 0).map(([, i]) => i);
  const span = held.length ? (held.at(-1) - held[0] + 1) / found.own.length : 0;
  const percent = (part) => `${part && part < 0.01 ? "under 1" : Math.round(100 * part)}%`;
  const rest = found.metadata
    ? `Metadata takes ${size(found.metadata_nbytes)}; it is drawn where it lies, to within 16 KiB. Of the rest, ${size(found.free_nbytes)} are free space that the file keeps track of; ${size(found.unaccounted_nbytes)} are lost, or hold values of variable length.`
    : "The rest is metadata, values of variable length and unused space.";
  $("spread").textContent = `Its data is ${percent(share(found.own))} of the file${held.length ? `, spread over ${percent(span)} of it` : ""}; data of other datasets is ${percent(share(found.others))}. ${rest}`;
}

function drawStrip() {
  const { found } = drawStrip;
  const { width, height } = $("strip").getBoundingClientRect();
  if (!found || !width) return;
  const ratio = devicePixelRatio || 1;
  $("strip").width = width * ratio;
  $("strip").height = height * ratio;
  const context = $("strip").getContext("2d");
  context.scale(ratio, ratio);
  const kinds = [[css("--mark"), "this dataset", found.own], [`rgb(${shade(0.45)})`, "other datasets", found.others]];
  if (found.metadata) kinds.push([css("--good"), "metadata", found.metadata]);
  const left = found.own.map((_, i) => 1 - kinds.reduce((sum, [,, parts]) => sum + parts[i], 0));
  kinds.push([css("--line"), found.metadata ? "free, lost, or of variable length" : "metadata and the rest", left]);
  found.own.forEach((_, i) => {
    let bottom = height;
    const each = width / found.own.length;
    for (const [colour, , parts] of kinds) {
      context.fillStyle = colour;
      context.fillRect(i * each, bottom - parts[i] * height, each + 0.5, parts[i] * height);
      bottom -= parts[i] * height;
    }
  });
  $("strip-legend").replaceChildren(...kinds.map(([colour, text]) => key(colour, text)));
}

async function hover(index) {
  if (!grid) { $("hover").textContent = "It has no chunks: its elements lie one after another."; return; }
  if (saved) { $("hover").textContent = `Chunk [${index.join(", ")}]`; return; }
  try {
    const one = await ask("chunk", { dataset: chosen, index: index.join() });
    const where = `Chunk [${one.index.join(", ")}], from element [${one.origin.join(", ")}]`;
    $("hover").textContent = one.address === null ? `${where}: never written; it reads as the fill value.`
      : `${where}: ${size(one.stored_nbytes)} at byte ${one.address.toLocaleString("en")} of the file, ratio ${three(drawing.raw_nbytes / one.stored_nbytes)}${one.filter_mask ? `, filter mask ${one.filter_mask}: filters were skipped` : ""}.`;
  } catch { $("hover").textContent = "\u00a0"; }
}

// The index that a box means: its range in the drawn dimensions, one element of the others.
function boxed(area) {
  if (saved) return;
  const text = facts.shape.map((n, axis) => {
    if (axis === view.vertical) return `${area[0]}:${area[2]}`;
    if (axis === view.horizontal) return `${area[1]}:${area[3]}`;
    return String(Math.min(n - 1, view.at[axis]));
  });
  costs.box(`[${text.join(", ")}]`);
}

// Show the first read of the chosen pattern, as far as it lies in this plane.
function drawFirst() {
  const one = costs.answered?.reads[costs.chosen];
  drawing.wanted = one ? one.first.map(inPlane).filter(Boolean) : [];
  drawing.redraw();
}

const MOST_PARTS = 2000;
// A hyperslab as ranges of elements along the drawn dimensions; null where it touches no chunk of
// the plane, and `given` where it has elements of it.
function inPlane([start, stride, number, block]) {
  const ranges = (axis) => (axis < 0 ? [[0, 1]] : Array.from({ length: Math.min(number[axis], MOST_PARTS) }, (_, k) => [start[axis] + k * stride[axis], start[axis] + k * stride[axis] + block[axis]]));
  let given = true;
  for (let axis = 0; axis < start.length; axis += 1) {
    if (axis === view.vertical || axis === view.horizontal) continue;
    const at = view.at[axis];
    const side = grid ? grid.chunk[axis] : 1;
    const begin = Math.floor(at / side) * side;
    // The first part that ends behind the chunk's begin, and that of the element.
    const from = (place) => start[axis] + stride[axis] * Math.max(0, Math.min(number[axis] - 1, Math.floor((place - start[axis] - block[axis]) / stride[axis]) + 1));
    const touches = (place, end) => from(place) < end && from(place) + block[axis] > place;
    if (!touches(begin, begin + side)) return null;
    given &&= touches(at, at + 1);
  }
  return { down: ranges(view.vertical), across: ranges(view.horizontal), given };
}

// The film's plane: that of the chunk that was touched last.
function goTo(start, shape, index) {
  const place = view.at.map((i, axis) => {
    const first = index ? Math.max(start[axis], index[axis] * grid.chunk[axis]) : start[axis];
    const isThere = i >= first && i < start[axis] + shape[axis] && (!index || Math.floor(i / grid.chunk[axis]) === index[axis]);
    return isThere ? i : first;
  });
  if (place.some((i, axis) => i !== view.at[axis] && axis !== view.vertical && axis !== view.horizontal)) {
    view.at = place;
    axes();
    show();
  }
  drawing.wanted = [inPlane([start, shape, shape.map(() => 1), shape])].filter(Boolean);
  legend();
}

function costsChanged(answered, tried, keeps) {
  if (keeps) work.offer(answered.write);
  else work.forget(answered.write);
  const one = answered.reads[costs.chosen];
  // The plane is that of the chosen read, until another is chosen by hand.
  const read = one && `${costs.number} ${one.text}`;
  if (view.read !== undefined && view.read !== read) view.follows = true;
  view.read = read;
  if (one && !saved && view.follows) {
    const at = begins(one);
    const moved = at.some((k, axis) => axis !== view.vertical && axis !== view.horizontal && k !== view.at[axis]);
    if (moved) { view.at = [...at]; look(); }
  }
  const { chunks } = answered.then;
  const differs = tried && chunks && chunks.join() !== answered.now.chunks?.join();
  drawing.tried = differs ? [view.vertical < 0 ? 1 : chunks[view.vertical], chunks[view.horizontal]] : null;
  const plays = Boolean(!saved && one && answered.now.chunks);
  film.forget(plays && !differs, plays && differs ? "It plays the chunks that the file has: press \"As it is\" below." : "");
  drawFirst();
  legend();
}

// --- together ---

function failed(error) {
  $("why-not").hidden = false;
  $("why-not").textContent = error.message;
}

for (const [id, event] of [["order", "change"], ["find", "input"]]) $(id).addEventListener(event, tree);
$("colour").addEventListener("change", () => { drawing.colour = $("colour").value; picturing(); drawing.redraw(); legend(); costs.lines(); });
$("in").addEventListener("click", () => drawing.zoom(0.7));
$("out").addEventListener("click", () => drawing.zoom(1 / 0.7));
$("whole").addEventListener("click", () => drawing.all());
$("move").addEventListener("click", () => {
  drawing.moving = !drawing.moving;
  $("move").setAttribute("aria-pressed", String(drawing.moving));
  drawing.canvas.classList.toggle("moving", drawing.moving);
});
$("canvas").addEventListener("pointerleave", () => { $("hover").textContent = "\u00a0"; });
new ResizeObserver(drawStrip).observe($("strip"));
if (matchMedia("(max-width: 62rem)").matches) $("objects").open = false;

// The server ends some time after the page.
function stay() {
  const alive = new EventSource("alive");
  alive.onerror = () => { $("gone").hidden = false; $("gone").textContent = "chunkwise has ended: start it again to go on."; };
  alive.onopen = () => { $("gone").hidden = true; };
}

async function begin() {
  document.querySelectorAll(".asks").forEach((one) => { one.hidden = saved; });
  about();
  tree();
  ofFile();
  if (file.far) document.querySelectorAll(".local").forEach((one) => { one.hidden = true; });
  if (saved) document.querySelector("option[value=values]").remove();
  if (!saved) stay();
  if (file.chosen !== null) await choose(file.chosen, [...file.access], file.tried, file.drawn).catch(failed);
  else { $("name").textContent = "There is no dataset in this file."; }
  if (saved) { document.documentElement.dataset.ready = "all"; return; }
  await drawing.ready();
  try {
    Object.assign(file, await ask("facts"), { sampled: true });
    findings = file.findings;
    about();
    tree();
    ofFile();
    if (chosen !== null) ofDataset();
  } catch (error) { $("about").textContent += ` ${error.message}`; }
  document.documentElement.dataset.ready = "all";
}

begin();
