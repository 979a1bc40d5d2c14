"use strict";
/* Draws each plot from the description beside it, and lets the legend hide series. */
(() => {
  const coarse = matchMedia("(pointer: coarse)").matches;
  const config = {
    responsive: true,
    displaylogo: false,
    showTips: false,
    displayModeBar: coarse ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };
  const waiting = [...document.querySelectorAll(".plot")];

  function draw(holder) {
    const { data, layout } = JSON.parse(document.getElementById(`${holder.id}-data`).textContent);
    // With a finger one scrolls; with a mouse one zooms.
    layout.dragmode = coarse ? false : "zoom";
    Plotly.newPlot(holder, data, layout, config);
    for (const button of document.querySelectorAll(`[data-plot="${holder.id}"]`)) {
      button.addEventListener("click", () => {
        const shown = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(shown));
        Plotly.restyle(holder, { visible: shown }, [Number(button.dataset.series)]);
      });
    }
  }

  function all() {
    while (waiting.length) draw(waiting.shift());
    document.documentElement.dataset.drawn = "all";
  }

  // One at a time, so that the page can be read and scrolled meanwhile.
  function next() {
    if (waiting.length) {
      draw(waiting.shift());
      setTimeout(next);
    } else all();
  }

  addEventListener("beforeprint", all);
  next();
})();
