// Elements, numbers in words, and questions to the server.

const read = (id) => JSON.parse(document.getElementById(id).textContent);
const saved = read("saved");
const $ = (id) => document.getElementById(id);

// Text from a file becomes text nodes only, and never markup.
function el(tag, settings = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(settings)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((one) => one !== null && one !== undefined));
  return made;
}

// What a button does: the server answers only the page itself.
const deed = (what, query = {}) => answered(fetch(what, { method: "POST", body: worded(query) }));

function worded(query) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) words.append(name, one);
  }
  return words;
}

async function answered(asking, what = "") {
  const answer = await asking;
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error ?? `Error ${answer.status}`);
  return what === "tile" ? new Float32Array(await answer.arrayBuffer()) : answer.json();
}

async function ask(what, query = {}) {
  if (saved) {
    const found = saved.answers[JSON.stringify([what, query])];
    if (!found) throw new Error("This page was saved, and does not hold this.");
    return what === "tile" ? unpacked(found) : found;
  }
  return answered(fetch(`${what}?${worded(query)}`), what);
}

// A tile that was saved without its empty margins.
function unpacked({ columns, values }, side = 256) {
  const cells = new Float32Array(Uint8Array.from(atob(values), (one) => one.charCodeAt(0)).buffer);
  const whole = new Float32Array(side * side).fill(NaN);
  cells.forEach((value, i) => { whole[Math.floor(i / columns) * side + (i % columns)] = value; });
  return whole;
}

function three(value) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en");
  return value.toPrecision(3);
}

function size(nbytes) {
  if (nbytes === null || nbytes === undefined) return "?";
  let unit = 0;
  while (nbytes >= 1024 && unit < 5) { nbytes /= 1024; unit += 1; }
  return `${unit ? three(nbytes) : Math.round(nbytes)} ${["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
}

function seconds(value) {
  if (value === null || value === undefined) return "…";
  for (const [limit, unit, scale] of [[1e-3, "µs", 1e6], [1, "ms", 1e3], [180, "s", 1], [7200, "min", 1 / 60], [172800, "h", 1 / 3600]]) {
    if (value < limit) return `${three(value * scale)} ${unit}`;
  }
  return `${three(value / 86400)} d`;
}

const count = (value) => (Number.isInteger(value) ? value : Number(value.toFixed(value < 10 ? 1 : 0))).toLocaleString("en");
const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
const lengths = (shape) => (shape?.length ? shape.join("x") : "scalar");
const times = (value) => (value < 10 ? three(value) : Math.round(value).toLocaleString("en"));

// A line to paste, with a button that copies it.
function pasteable({ what, line }) {
  const text = el("pre", {}, line);
  const copy = el("button", { type: "button", "aria-label": `Copy: ${what}` }, "Copy");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(line);
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    } catch {
      getSelection().selectAllChildren(text);
    }
  });
  return el("li", {}, el("small", {}, what), el("div", { className: "line" }, text, copy));
}

// Wait until a series of events pauses; the last one counts.
function settled(work, wait_ms = 30) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), wait_ms);
  };
}
