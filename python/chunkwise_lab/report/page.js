"use strict";
/* Draws each plot from the description beside it when it comes near the window (hundreds at once
 * take half a minute), all before the page is printed; and lets the legend hide series. */
(() => {
  const coarse = matchMedia("(pointer: coarse)").matches;
  const config = {
    responsive: true,
    displaylogo: false,
    showTips: false,
    displayModeBar: coarse ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };
  const waiting = new Set(document.querySelectorAll(".plot"));

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

  function drawn(holders) {
    for (const holder of holders) {
      if (waiting.delete(holder)) draw(holder);
      near.unobserve(holder);
    }
    if (!waiting.size) document.documentElement.dataset.drawn = "all";
  }

  const near = new IntersectionObserver(
    (entries) => drawn(entries.filter((one) => one.isIntersecting).map((one) => one.target)),
    { rootMargin: "800px" },
  );
  for (const holder of waiting) near.observe(holder);
  addEventListener("beforeprint", () => drawn([...waiting]));
})();
