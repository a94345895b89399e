// Draws the charts of report.html from the data in it. Talks to nothing outside the page.
"use strict";
(() => {
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", () => copy(button));
  }

  function copy(button) {
    const code = document.getElementById(button.dataset.copy);
    const selection = window.getSelection();
    selection.selectAllChildren(code);
    // A page opened from a file may have no clipboard; then the text stays selected for Ctrl-C.
    const done = navigator.clipboard
      ? navigator.clipboard.writeText(code.textContent)
      : Promise.reject(new Error("no clipboard"));
    done.then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Selected"; });
  }

  begin(document);
  // A picture has no size before it is unfolded.
  for (const folded of document.querySelectorAll("details:has(svg)")) {
    folded.addEventListener("toggle", () => begin(folded), { once: true });
  }

  function begin(part) {
    const seen = (inside) => inside.getClientRects().length > 0;
    for (const graph of part.querySelectorAll("svg.graph")) if (seen(graph)) fit(graph);
    for (const last of part.querySelectorAll(".picture .culprit, svg.graph .culprit"))
      if (seen(last)) show(last);
  }

  // A graph that is little wider than its frame is made to fit, as long as it can be read.
  function fit(graph) {
    const room = graph.closest(".scroll").clientWidth;
    const wide = graph.width.baseVal.value;
    if (wide <= room || room < 0.8 * wide) return;
    graph.setAttribute("height", graph.height.baseVal.value * room / wide);
    graph.setAttribute("width", room);
  }

  // What could not be placed stands at the right end of a wide picture: begin there.
  function show(last) {
    const frame = last.closest(".scroll");
    const box = last.getBoundingClientRect();
    const room = frame.getBoundingClientRect();
    if (box.right <= room.right) return;
    const told = frame.parentElement.querySelector(":scope > .note > .earlier");
    if (told) told.hidden = false;
    frame.scrollLeft += box.right - room.right + 24;
    // A box that the left edge would cut in two is left out whole.
    const cut = [...frame.querySelectorAll(".call")]
      .map((call) => call.getBoundingClientRect())
      .filter((call) => call.left < room.left && call.right > room.left && call.width < room.width / 2);
    if (!cut.length) return;
    const further = Math.max(...cut.map((call) => call.right - room.left)) + 6;
    widen(last.closest("svg"), frame.scrollLeft + further - (frame.scrollWidth - frame.clientWidth));
    frame.scrollLeft += further;
  }

  // Room at the right end, where a frame can scroll no further without it.
  function widen(picture, overhang) {
    if (overhang <= 0) return;
    const view = picture.viewBox.baseVal;
    const wide = picture.width.baseVal.value + overhang;
    picture.setAttribute("viewBox", `${view.x} ${view.y} ${view.width + overhang} ${view.height}`);
    picture.setAttribute("width", wide);
  }

  const holder = document.getElementById("chart-data");
  if (!holder || typeof uPlot === "undefined") return;
  const { color, axis, duration, onTheme, keepWidths } = globalThis.reportCharts;
  const data = JSON.parse(holder.textContent);
  const whole = { min: 0, max: data.end_s };
  const AXIS_PX = 72;
  let charts = [];
  let zoomed = whole;
  let passingOn = false;

  const seconds = (value) => (value == null ? "" : value.toFixed(3) + " s");

  // One zoom for all charts: whoever is dragged or set tells the others.
  function passOn(source, key) {
    if (key !== "x" || passingOn) return;
    passingOn = true;
    const { min, max } = source.scales.x;
    zoomed = { min, max };
    for (const chart of charts) if (chart !== source) chart.setScale("x", zoomed);
    passingOn = false;
  }

  function zoom(min, max) {
    zoomed = { min: Math.max(0, min), max: Math.min(whole.max, max) };
    if (charts.length) charts[0].setScale("x", zoomed);
  }

  function drawBands(chart) {
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const band of data.faults) {
      const left = chart.valToPos(band.start_s, "x", true);
      const right = Math.max(chart.valToPos(band.end_s, "x", true), left + 2);
      ctx.fillStyle = color("band");
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
      ctx.fillStyle = color("band-edge");
      ctx.fillRect(left, bbox.top, devicePixelRatio, bbox.height);
      ctx.fillRect(right - devicePixelRatio, bbox.top, devicePixelRatio, bbox.height);
    }
    ctx.restore();
  }

  function drawBandLabels(chart) {
    const { ctx, bbox } = chart;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.font = 11 * ratio + "px system-ui, sans-serif";
    ctx.fillStyle = color("ink");
    ctx.textAlign = "left";
    ctx.textBaseline = "top";
    // Bands may overlap in more rows than there are: where a label has no room it is left out.
    const free = new Map();
    for (const band of data.faults) {
      const left = Math.max(chart.valToPos(band.start_s, "x", true), bbox.left);
      const right = Math.min(chart.valToPos(band.end_s, "x", true), bbox.left + bbox.width);
      const room = right - left - 6 * ratio;
      const text = [band.label, band.kind, "#" + band.index].find(
        (candidate) => ctx.measureText(candidate).width <= room,
      );
      if (!text || left < (free.get(band.row) ?? 0)) continue;
      ctx.fillText(text, left + 4 * ratio, bbox.top + (3 + 14 * band.row) * ratio);
      free.set(band.row, left + 6 * ratio + ctx.measureText(text).width);
    }
    ctx.restore();
  }

  function drawReigns(chart) {
    const { ctx, bbox } = chart;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = 12 * ratio + "px system-ui, sans-serif";
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    for (const reign of data.reigns) {
      const lane = data.nodes.indexOf(reign.node);
      const top = chart.valToPos(data.nodes.length - lane - 0.12, "y", true);
      const height = chart.valToPos(data.nodes.length - lane - 0.88, "y", true) - top;
      const left = chart.valToPos(reign.start_s, "x", true);
      const width = Math.max(chart.valToPos(reign.end_s, "x", true) - left, 2 * ratio);
      ctx.fillStyle = color("epoch-" + ((reign.epoch % 6) + 1));
      ctx.fillRect(left, top, width, height);
      if (reign.clash) {
        ctx.lineWidth = 3 * ratio;
        ctx.strokeStyle = color("invalid");
        ctx.strokeRect(left, top, width, height);
      }
      const shown = Math.max(left, bbox.left);
      const room = Math.min(left + width, bbox.left + bbox.width) - shown - 10 * ratio;
      const text = ["leads epoch " + reign.epoch, "epoch " + reign.epoch, "" + reign.epoch].find(
        (candidate) => ctx.measureText(candidate).width <= room,
      );
      ctx.fillStyle = "#fff";
      if (text) ctx.fillText(text, shown + 5 * ratio, top + height / 2);
    }
    ctx.restore();
  }

  function axes(yLabels) {
    return [
      { ...axis(), values: (_, marks) => marks.map((mark) => +mark.toFixed(3) + " s"), space: 70 },
      { ...axis(), size: AXIS_PX, ...yLabels },
    ];
  }

  function options(holderElement, height, extra) {
    return {
      width: holderElement.clientWidth,
      height,
      padding: [8, 24, 0, 0], // half of "3600 s" hangs over the end
      cursor: { sync: { key: "splitbrain" }, drag: { x: true, y: false }, ...extra.cursor },
      legend: { live: true, show: extra.legend !== false },
      scales: { x: { time: false }, y: extra.y },
      axes: axes(extra.yAxis),
      series: [{ label: "time", value: (_, value) => seconds(value) }, ...extra.series],
      hooks: { setScale: [passOn], drawClear: [drawBands], draw: extra.draw },
    };
  }

  // Hovering finds the nearest point of each kind, not only the one at exactly that time.
  function nearest(chart, series, index, x) {
    const values = chart.data[series];
    if (series === 0 || values[index] != null) return index;
    const lines = series > data.latency.length;
    const reach = Math.max((chart.scales.x.max - chart.scales.x.min) / 60,
      lines ? data.throughput.stretch_s : 0);
    for (let step = 1; step < 400; step++) {
      for (const place of [index - step, index + step]) {
        if (values[place] != null && Math.abs(chart.data[0][place] - x) <= reach) return place;
      }
    }
    return index;
  }

  // The charts' library finds no marks for a logarithmic axis that begins just below a power of ten.
  function roundedDown(value) {
    const unit = 10 ** Math.floor(Math.log10(value));
    return value > 0 ? Math.max(1, Math.floor(value / unit)) * unit : value;
  }

  function latencyChart(element) {
    const dots = data.latency;
    const middle = data.throughput.times_s.map((time) => time + data.throughput.stretch_s / 2);
    const rows = [];
    dots.forEach((series, number) =>
      series.times_s.forEach((time, place) => rows.push([time, number, series.latencies_ms[place]])));
    middle.forEach((time, place) => {
      rows.push([time, dots.length, data.throughput.p50_ms[place]]);
      rows.push([time, dots.length + 1, data.throughput.p99_ms[place]]);
    });
    rows.sort((first, second) => first[0] - second[0]);
    // A hole (undefined) is not a gap (null): lines go over holes and stop at gaps.
    const columns = [rows.map((row) => row[0])];
    for (let number = 0; number < dots.length + 2; number++) {
      columns.push(new Array(rows.length).fill(undefined));
    }
    rows.forEach((row, place) => { columns[row[1] + 1][place] = row[2]; });
    const kinds = [...new Set(dots.map((series) => series.kind))].sort();
    // Before anything is pointed at there is no value: the legend then shows names alone.
    const milliseconds = (_, value) => (value == null ? "" : value.toLocaleString("en") + " ms");
    const series = dots.map((item) => {
      const own = item.outcome === "ok"
        ? color("kind-" + ((kinds.indexOf(item.kind) % 5) + 1)) : color(item.outcome);
      return {
        label: item.kind + " " + item.outcome, stroke: own, value: milliseconds,
        paths: () => null,
        points: { show: true, size: { ok: 3.5, fail: 4.5, info: 8 }[item.outcome], width: 1.2, stroke: own,
          fill: item.outcome === "ok" ? own : "transparent" },
      };
    });
    for (const [label, name] of [["p50 ok", "ink-soft"], ["p99 ok", "ink"]]) {
      series.push({ label, stroke: color(name), width: 1.5, dash: label[1] === "9" ? [] : [4, 3],
        value: milliseconds, points: { show: false } });
    }
    return new uPlot(options(element, 300, {
      series, y: { distr: 3, range: (_, low, high) => [roundedDown(low * 0.7), high * 2.2] }, cursor: { dataIdx: nearest },
      yAxis: { values: (_, marks) => marks.map(duration) },
      draw: [drawBandLabels],
    }), columns, element);
  }

  function throughputChart(element) {
    const stepped = uPlot.paths.stepped({ align: 1 });
    const rate = (_, value) => (value == null ? "" : value.toLocaleString("en") + " /s");
    const series = ["ok", "fail", "info"].map((outcome) => ({
      label: outcome, stroke: color(outcome), width: 1.6, paths: stepped, value: rate,
      fill: outcome === "ok" ? color("ok") + "22" : undefined, points: { show: false },
    }));
    const { times_s, stretch_s, ok, fail, info } = data.throughput;
    const extended = (values) => [...values, values[values.length - 1]];
    return new uPlot(options(element, 200, {
      series, y: { range: (_, low, high) => [0, Math.max(1, high * 1.12)] },
      yAxis: { values: (_, marks) => marks.map((mark) => mark + " /s") },
      draw: [drawBandLabels],
    }), [[...times_s, times_s[times_s.length - 1] + stretch_s],
      extended(ok), extended(fail), extended(info)], element);
  }

  function leaderChart(element) {
    const count = data.nodes.length;
    return new uPlot(options(element, 44 * count + 44, {
      series: [{ show: true, paths: () => null, points: { show: false } }], legend: false,
      y: { range: [0, count] },
      yAxis: { splits: () => data.nodes.map((_, lane) => count - lane - 0.5),
        values: () => data.nodes, grid: { show: false } },
      draw: [drawReigns],
    }), [[0, data.end_s], [null, null]], element);
  }

  function build() {
    for (const chart of charts) chart.destroy();
    charts = [];
    const made = [];
    const keep = zoomed;
    for (const [id, make] of [["latency", latencyChart], ["throughput", throughputChart],
      ["leaders", leaderChart]]) {
      const element = document.getElementById("plot-" + id);
      if (element) made.push(make(element));
    }
    charts = made;
    zoom(keep.min, keep.max);
  }

  build();
  document.documentElement.dataset.charts = String(charts.length);
  if (!charts.length) return;
  onTheme(build);
  keepWidths(document.getElementById("timeline"), () => charts);

  const chooser = document.getElementById("zoom-to");
  chooser.addEventListener("change", () => {
    const [from, to] = chooser.value.split(" ").map(Number);
    zoom(from, to);
  });
  const around = (factor, shift) => {
    const width = zoomed.max - zoomed.min;
    const center = (zoomed.max + zoomed.min) / 2 + shift * width;
    zoom(center - (width * factor) / 2, center + (width * factor) / 2);
  };
  const steps = { in: [0.5, 0], out: [2, 0], left: [1, -0.4], right: [1, 0.4] };
  for (const button of document.querySelectorAll("button[data-zoom]")) {
    button.addEventListener("click", () => around(...steps[button.dataset.zoom]));
  }
})();
