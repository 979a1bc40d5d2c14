// What takes long: it runs beside the page, says how far it is, and can be ended.

const NOTHING_TRIED = { chunk: null, filters: "", cache: null, reader: "" };

class Work {
  constructor(costs) {
    Object.assign(this, { costs, running: false });
    $("best").addEventListener("click", () => this.begin("best"));
    $("bench").addEventListener("click", () => this.begin("bench"));
    $("write").addEventListener("submit", (event) => {
      event.preventDefault();
      this.written = this.word;
      this.begin("write", { out: $("target").value });
    });
    $("target").addEventListener("input", () => this.spell());
    $("cancel").addEventListener("click", () => deed("cancel").catch(() => {}));
  }

  // Another dataset or layout: what was said of the one before goes.
  forget(write) {
    if (this.running) return;
    $("progress").textContent = "";
    $("advice").replaceChildren();
    this.offer(write);
  }

  offer(write) {
    $("write").hidden = !write?.line;
    if (!write) return;
    this.line = write.line;
    if ($("target").dataset.given !== write.out) $("target").value = $("target").dataset.given = write.out;
    this.spell();
  }

  spell() {
    const out = $("target").value;
    const word = /^[\w./@%+=:,][\w./@%+=:,-]*$/.test(out) ? out : `'${out.replaceAll("'", "'\"'\"'")}'`;
    this.word = word;
    $("writes").replaceChildren(pasteable({ what: "This runs, and proves that the new file holds the same. It replaces no file.", line: `${this.line} ${word}` }));
  }

  async begin(work, more = {}) {
    const { number } = this.costs;
    this.running = true;
    this.enable(false);
    $("advice").replaceChildren();
    $("progress").textContent = "It begins …";
    try {
      let found = await deed("begin", { work, ...this.costs.query, ...more });
      while (found.running) {
        const { step } = found;
        if (step) $("progress").textContent = `${step.text}${step.total ? `: ${step.done} of ${step.total}` : ""} …`;
        await new Promise((done) => { setTimeout(done, 300); });
        found = await ask("work");
      }
      if (found.error) throw new Error(found.error);
      $("progress").textContent = "";
      if (this.costs.number === number) this[work](found.result);
    } catch (error) { $("progress").textContent = error.message; }
    this.running = false;
    this.enable(true);
  }

  enable(on) {
    for (const id of ["best", "bench", "written"]) $(id).disabled = !on;
    $("cancel").hidden = on;
  }

  table(caption, head, rows) {
    const cell = (parts, k) => el(k ? "td" : "th", { "data-name": head[k], ...(k ? {} : { scope: "row" }) }, ...[parts].flat());
    $("advice").append(el("table", { className: "reads" }, el("caption", { className: "hidden" }, caption),
      el("thead", {}, el("tr", {}, ...head.map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map(cell))))));
  }

  best(advice) {
    $("progress").textContent = advice.reason;
    const of = (measured, model) => [measured ? seconds(measured.median) : "not measured", model === null ? null : el("small", {}, `predicted: ${seconds(model)}`)];
    this.table("What was measured", ["Read", "As it is", "Best", "As it is, with chunkwise"],
      advice.patterns.map((one) => [one.name, of(one.present, one.present_model_s), of(one.best, one.best_model_s), of(one.ours, null)]));
    $("advice").append(el("ul", { className: "commands" }, ...(advice.leave ? advice.open_fixes : advice.fixes).slice(0, 3).map((fix) => pasteable({ what: fix.tool, line: fix.text }))));
    if (!advice.leave) this.costs.tryOut({ chunk: advice.best.chunks, filters: advice.best.filters }, false);
  }

  bench(found) {
    const { reads, then } = this.costs.answered;
    const tried = Object.values(found.reads).some((one) => one.tried_s !== null);
    const of = (measured, model) => [measured === null ? "not measured" : seconds(measured), el("small", {}, `predicted: ${seconds(model)}`)];
    $("progress").textContent = `Measured on ${found.part}.${found.failed.length ? ` Not measured: ${found.failed.join("; ")}` : ""}`;
    const head = ["Read", "With libhdf5", "With chunkwise", ...(tried ? [`Tried: chunks of ${lengths(then.chunks)}`] : [])];
    this.table("Measured and predicted", head, reads.filter((one) => one.text in found.reads).map((one) => {
      const measured = found.reads[one.text];
      return [one.text, of(measured.libhdf5_s, one.now.libhdf5_s), of(measured.chunkwise_s, one.now.chunkwise_s),
        ...(tried ? [of(measured.tried_s, one.then.libhdf5_s)] : [])];
    }));
  }

  write(lines) {
    $("progress").textContent = "It is written, and proved.";
    const look = pasteable({ what: "Look at it", line: `chunkwise view ${this.written}` });
    $("advice").replaceChildren(el("pre", {}, lines.join("\n")), el("ul", { className: "commands" }, look));
  }
}
