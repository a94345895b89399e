// Draws the trends of the page over all runs from the data in it. Talks to nothing outside the page.
"use strict";
(() => {
  const holder = document.getElementById("trend-data");
  if (!holder || typeof uPlot === "undefined") return;
  const { color, axis, duration, onTheme, keepWidths } = globalThis.reportCharts;
  const trends = JSON.parse(holder.textContent);
  const HEIGHT = 220;
  const DAY_S = 86400;
  let charts = [];

  const utc = (seconds) => new Date(seconds * 1000).toISOString().replace("T", " ");
  const exact = { share: (value) => (value * 100).toFixed(1) + "%",
    ms: (value) => Number(value.toPrecision(4)).toLocaleString("en") + " ms" };
  const mark = { share: (value) => +(value * 100).toFixed(2) + "%", ms: duration };

  function drawLevels(chart, trend) {
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.strokeStyle = color("ink-soft");
    ctx.lineWidth = 1.5 * devicePixelRatio;
    for (const level of trend.levels) {
      const y = chart.valToPos(level.middle, "y", true);
      ctx.beginPath();
      ctx.moveTo(chart.valToPos(level.begin - 0.5, "x", true), y);
      ctx.lineTo(chart.valToPos(level.end - 0.5, "x", true), y);
      ctx.stroke();
    }
    ctx.restore();
  }

  // Marks of changes are elements: they have a word beside their colour, and a text to point at.
  function addMarks(chart, trend) {
    for (const level of trend.levels) {
      if (level.text == null) continue;
      const line = document.createElement("div");
      line.className = "change-mark " + (level.worse ? "worse" : "better");
      line.dataset.place = level.begin;
      const word = document.createElement("span");
      word.textContent = level.worse ? "worse" : "better";
      line.append(word);
      chart.over.append(line);
    }
    placeMarks(chart);
  }

  function placeMarks(chart) {
    const width = chart.over.clientWidth;
    for (const line of chart.over.querySelectorAll(".change-mark")) {
      const left = chart.valToPos(Number(line.dataset.place) - 0.5, "x");
      line.hidden = !(left >= 0 && left <= width);
      line.classList.toggle("late", left > width / 2);
      line.style.left = left + "px";
    }
  }

  function words(trend, place) {
    const lines = [trend.run_ids[place], utc(trend.started_s[place]).slice(0, 16) + " UTC: " +
      exact[trend.unit](trend.values[place])];
    // Both runs beside the line tell of it.
    const change = trend.levels.find(
      (level) => level.text != null && (level.begin === place || level.begin === place + 1));
    if (change) lines.push((change.begin === place ? "The level changed here. "
      : "The level changes after this run. ") + change.text);
    return lines;
  }

  function tell(chart, trend, tip) {
    const place = chart.cursor.idx;
    tip.hidden = place == null || chart.cursor.left < 0;
    if (tip.hidden) return;
    tip.replaceChildren(...words(trend, place).map((text) => {
      const line = document.createElement("div");
      line.textContent = text;
      return line;
    }));
    tip.classList.toggle("on-the-left", chart.cursor.left > chart.over.clientWidth / 2);
  }

  // As wide as the longest mark, for a narrow page has no room to give away.
  function labelRoom(chart, labels, axisIndex, cycle) {
    if (cycle > 1) return chart.axes[axisIndex]._size;
    if (!labels) return 40;
    chart.ctx.save();
    chart.ctx.font = chart.axes[axisIndex].font[0];
    const widest = Math.max(0, ...labels.map((text) => chart.ctx.measureText(text ?? "").width));
    chart.ctx.restore();
    return Math.ceil(widest / devicePixelRatio) + 16;
  }

  function xLabels(trend) {
    const start = trend.started_s[0];
    const long = trend.started_s[trend.started_s.length - 1] - start > 2 * DAY_S;
    return (_, marks) => marks.map((place) => {
      if (!Number.isInteger(place) || trend.started_s[place] == null) return "";
      const text = utc(trend.started_s[place]);
      return long ? text.slice(0, 10) : text.slice(5, 16);
    });
  }

  function draw(element, trend) {
    const last = trend.values.length - 1;
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    const chart = new uPlot({
      width: element.clientWidth,
      height: HEIGHT,
      padding: [18, 38, 0, 0], // half a label hangs over the last run
      cursor: { y: false, drag: { x: true, y: false }, points: { size: 9 } },
      legend: { show: false },
      scales: {
        x: { time: false, range: (_, low, high) => [Math.max(low, 0) - 0.5, Math.min(high, last) + 0.5] },
        y: { range: [trend.low, trend.high] },
      },
      axes: [
        { ...axis(), values: xLabels(trend), space: 96, incrs: [1, 2, 5, 10, 20, 50, 100, 200],
          label: "runs by their start, UTC", labelFont: axis().font, labelSize: 18, size: 30 },
        { ...axis(), values: (_, marks) => marks.map(mark[trend.unit]), size: labelRoom },
      ],
      series: [{}, { paths: () => null, points: { show: true, size: 5, width: 0,
        stroke: color("kind-1"), fill: color("kind-1") } }],
      hooks: {
        drawClear: [(made) => drawLevels(made, trend)],
        draw: [placeMarks],
        setCursor: [(made) => tell(made, trend, tip)],
      },
    }, [trend.values.map((_, place) => place), trend.values], element);
    chart.over.append(tip);
    addMarks(chart, trend);
    return chart;
  }

  function build() {
    for (const chart of charts) chart.destroy();
    charts = trends.map((trend, number) => draw(document.getElementById("trend-" + number), trend));
  }

  // Shows the charts instead of the pictures that stand still: before, they have no width.
  document.documentElement.dataset.charts = String(trends.length);
  build();
  onTheme(build);
  keepWidths(document.getElementById("trends"), () => charts);
})();
