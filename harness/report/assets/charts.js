// What every page with charts shares: the page's colours, axes, and marks that people can read.
"use strict";
globalThis.reportCharts = (() => {
  const color = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const font = () => "12px system-ui, sans-serif";
  // A mark of an axis, short enough for its room.
  const short = (value) => Number(value.toPrecision(3)).toLocaleString("en");
  const duration = (value_ms) => {
    if (value_ms == null) return "";
    if (value_ms >= 1000) return short(value_ms / 1000) + " s";
    return value_ms < 1 ? short(value_ms * 1000) + " µs" : short(value_ms) + " ms";
  };
  const axis = () => ({
    stroke: color("ink-soft"), font: font(),
    grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line"), width: 1 },
  });

  // A canvas does not follow the page's colours by itself: it is made anew.
  function onTheme(build) {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", build);
  }

  // Nor does it follow the width of what it stands in.
  function keepWidths(element, chartsNow) {
    new ResizeObserver(() => {
      for (const chart of chartsNow()) {
        const width = chart.root.parentElement.clientWidth;
        if (width && width !== chart.width) chart.setSize({ width, height: chart.height });
      }
    }).observe(element);
  }

  return { color, axis, duration, onTheme, keepWidths };
})();
