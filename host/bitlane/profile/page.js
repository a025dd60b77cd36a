// Colours the figures as the page is coloured, and moves them to what a button names.
const model = (name) => Bokeh.documents[0].get_model_by_name(name);

function paint() {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink").trim();
  const soft = style.getPropertyValue("--soft").trim();
  for (const name of ["rates", "spans"]) {
    const plot = model(name);
    for (const axis of [...plot.below, ...plot.left]) {
      axis.major_label_text_color = ink;
      axis.axis_label_text_color = soft;
      for (const line of ["axis_line_color", "major_tick_line_color", "minor_tick_line_color"]) axis[line] = soft;
    }
    for (const grid of plot.center) if ("grid_line_color" in grid) grid.grid_line_color = soft;
    for (const legend of plot.above) {
      legend.label_text_color = ink;
      legend.background_fill_alpha = 0;
      legend.border_line_alpha = 0;
      legend.padding = 0;
    }
  }
}

function show(first, end) {
  const cycles = model("cycles");
  const room = Math.max(1, (end - first) * 0.03);
  cycles.setv({ start: first - room, end: end + room });
}

function ready() {
  if (!Bokeh.documents[0]?.is_idle) return setTimeout(ready, 20);
  paint();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  for (const button of document.querySelectorAll("button[data-first]")) {
    button.addEventListener("click", () => {
      show(Number(button.dataset.first), Number(button.dataset.end));
      document.getElementById("timeline").scrollIntoView({ block: "nearest" });
    });
  }
  document.body.dataset.ready = "yes";
}
ready();
