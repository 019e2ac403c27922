// Shows a frame of a flame graph and all below it as wide as the graph, and those above it as wide
// as that. The root shows everything again.
"use strict";
for (const graph of document.querySelectorAll("svg.flame")) {
  const frames = [...graph.querySelectorAll("svg.f")];
  const place = (frame) =>
    ["data-x", "data-w", "data-d"].map((name) => Number(frame.getAttribute(name)));
  const zoom = (shown) => {
    const [from, width, depth] = place(shown);
    const tiny = width * 1e-6;
    for (const frame of frames) {
      const [x, w, d] = place(frame);
      const isAbove = d < depth && x <= from + tiny && x + w >= from + width - tiny;
      const isInside = d >= depth && x >= from - tiny && x + w <= from + width + tiny;
      frame.setAttribute("display", isAbove || isInside ? "inline" : "none");
      frame.setAttribute("x", isAbove ? "0%" : `${(100 * (x - from)) / width}%`);
      frame.setAttribute("width", isAbove ? "100%" : `${(100 * w) / width}%`);
      frame.classList.toggle("above", isAbove);
    }
  };
  for (const frame of frames) {
    frame.addEventListener("click", () => zoom(frame));
    frame.addEventListener("keydown", (event) => {
      if (event.key === "Enter") zoom(frame);
    });
  }
}
