// The values of the plane that is drawn, from far away.

const FILL_LEVEL = 253;
const ABSENT = { 253: ["#b08968", "fill value"], 254: ["#d946ef", "not a number"], 255: ["#111111", "infinite"] };
const GREYS = (part) => Array(3).fill(Math.round(255 * part));

class Picture {
  constructor(changed) { Object.assign(this, { changed, key: "", found: null, error: "" }); }

  // Ask for another plane; until it comes, and if it does not, there is none.
  async show(query) {
    const key = JSON.stringify(query);
    if (key === this.key) return;
    Object.assign(this, { key, found: null, image: null, error: "" });
    try {
      const found = await ask("picture", query);
      if (key === this.key) this.found = found;
    } catch (error) {
      if (key === this.key) this.error = error.message;
    }
    if (key === this.key) this.changed();
  }

  get drawn() {
    const { found } = this;
    if (!found) return null;
    if (!this.image) {
      const levels = Uint8Array.from(atob(found.levels), (one) => one.charCodeAt(0));
      const data = new ImageData(found.columns, found.rows);
      levels.forEach((level, i) => {
        const absent = ABSENT[level]?.[0];
        const colour = absent ? [1, 3, 5].map((at) => parseInt(absent.slice(at, at + 2), 16)) : GREYS(level / (FILL_LEVEL - 1));
        data.data.set([...colour, 255], 4 * i);
      });
      this.image = new OffscreenCanvas(found.columns, found.rows);
      this.image.getContext("2d").putImageData(data, 0, 0);
    }
    return this.image;
  }
}
