// The timeline of messages: what is in view, and what pointer, keys and buttons do to it.
"use strict";
(() => {
  const holder = document.getElementById("message-timeline-data");
  if (!holder) return;
  const { Picture, GUTTER, Spans, words, duration, moment } = globalThis.messageTimeline;
  const data = JSON.parse(holder.textContent);
  const part = (name) => document.getElementById("message-timeline-" + name);
  const canvas = part("canvas"), overview = part("overview"), panel = part("panel"), status = part("status");
  const picture = new Picture(canvas, data);
  const NARROWEST = 20, BINS = 400;
  const BEFORE = 2_000_000;
  // A little room behind the end, where the violation often stands.
  const whole = { from: data.begin, to: data.end + Math.max(NARROWEST, (data.end - data.begin) * 0.02) };
  const view = { ...whole, spread: false, hideIdle: true, hiddenNames: new Set(), disks: true, logs: true, selected: null };
  let asked = 0;
  let frames = 0;

  // --- what is in view -----------------------------------------------------------------------

  function show(from, to) {
    const width = Math.min(Math.max(to - from, NARROWEST), whole.to - whole.from);
    view.from = Math.min(Math.max(from, whole.from), whole.to - width);
    view.to = view.from + width;
    redraw();
  }

  // Where zooming by key or button goes: what was chosen, else the violation, else the middle.
  function focus() {
    const wanted = [view.selected?.row[0], data.violation, (view.from + view.to) / 2];
    return wanted.find((time) => time != null && time >= view.from && time <= view.to);
  }

  function zoom(factor, around = focus()) {
    show(around - (around - view.from) * factor, around + (view.to - around) * factor);
  }

  const shift = (share) => show(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));

  function toViolation() {
    if (data.violation == null) return;
    // What led there is to the left of it.
    const width = Math.min(BEFORE, whole.to - whole.from);
    show(data.violation - width, data.violation + width * 0.08);
  }

  function bringViolationIntoView() {
    if (data.violation == null) return;
    toViolation();
    canvas.scrollIntoView({ block: "nearest" });
  }

  const actions = {
    in: () => zoom(0.5), out: () => zoom(2), earlier: () => shift(-0.3), later: () => shift(0.3),
    begin: () => show(whole.from, whole.from + view.to - view.from),
    end: () => show(whole.to - (view.to - view.from), whole.to),
    whole: () => show(whole.from, whole.to), violation: bringViolationIntoView,
    next: () => step(1), previous: () => step(-1),
  };
  const keys = { "+": "in", "=": "in", "-": "out", ArrowLeft: "earlier", ArrowRight: "later", Home: "begin", End: "end",
    0: "whole", v: "violation", n: "next", p: "previous" };

  // --- drawing -------------------------------------------------------------------------------

  function redraw() {
    if (!asked) asked = requestAnimationFrame(() => { asked = 0; paint(); });
  }

  function paint() {
    if (!canvas.clientWidth) return;
    const cost = picture.draw(view);
    paintOverview();
    const all = data.messages.length;
    const width = duration(view.to - view.from);
    let text = moment(view.from, 1000) + " to " + moment(view.to, 1000) + " (" + width + "). ";
    text += cost.mode === "columns"
      ? cost.inView.toLocaleString("en") + " messages in view: columns show how many each node sent (red: lost). Zoom in to see each."
      : cost.inView.toLocaleString("en") + " of " + all.toLocaleString("en") + " messages in view.";
    status.textContent = text;
    frames++;
    Object.assign(canvas.dataset, {
      frames, mode: cost.mode, arrows: cost.arrows, drawn: cost.drawn, examined: cost.examined,
      inView: cost.inView, from: Math.round(view.from), to: Math.round(view.to),
    });
  }

  const bins = new Array(BINS).fill(0);
  for (const row of data.messages) {
    bins[Math.min(BINS - 1, Math.floor(((row[0] - whole.from) / (whole.to - whole.from)) * BINS))]++;
  }
  const most = Math.max(1, ...bins);

  // The whole run in a strip, with a frame around what is in view.
  function paintOverview() {
    const ratio = globalThis.devicePixelRatio || 1;
    const width = overview.clientWidth, height = overview.clientHeight;
    overview.width = Math.round(width * ratio);
    overview.height = Math.round(height * ratio);
    const context = overview.getContext("2d");
    context.scale(ratio, ratio);
    const x = (time) => GUTTER + ((time - whole.from) / (whole.to - whole.from)) * (width - GUTTER);
    context.fillStyle = picture.color("fault");
    for (const [start, end] of data.faults) context.fillRect(x(start), 0, Math.max(2, x(end) - x(start)), height);
    context.fillStyle = picture.color("ink-soft");
    bins.forEach((count, bin) => {
      const tall = (count / most) * (height - 6);
      context.fillRect(GUTTER + (bin / BINS) * (width - GUTTER), height - tall, Math.max(1, (width - GUTTER) / BINS - 0.5), tall);
    });
    context.fillStyle = picture.color("invalid");
    for (const [time] of data.violations) context.fillRect(x(time) - 1, 0, 2.5, height);
    const left = x(view.from), wide = Math.max(5, x(view.to) - x(view.from));
    context.fillStyle = picture.color("window");
    context.fillRect(left, 0, wide, height);
    context.strokeStyle = picture.color("focus");
    context.lineWidth = 2;
    context.strokeRect(left + 1, 1, wide - 2, height - 2);
    context.fillStyle = picture.color("ink-soft");
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "right";
    context.fillText("whole run", GUTTER - 9, height / 2 + 4);
  }

  // --- what is pointed at --------------------------------------------------------------------

  const laneName = (lane) => data.nodes[lane] ?? data.clients[lane - data.nodes.length] ?? "";
  const columnName = (lane) => picture.laneName(lane, view);

  function tell(target) {
    const [heading, sentence, detail] = words(target, data, target.kind === "column" ? columnName : laneName);
    panel.replaceChildren();
    for (const [tag, text] of [["strong", heading], ["span", sentence], ["span", detail]]) {
      if (!text) continue;
      const element = document.createElement(tag);
      element.textContent = text;
      panel.append(element, " ");
    }
  }

  function select(target) {
    view.selected = target && { kind: target.kind, row: target.row };
    if (target) tell(target);
    redraw();
  }

  // All that can be stepped through, in the order of time, as it is filtered.
  const everything = new Spans([
    ...data.messages.map((row) => [row[0], null, "message", row]),
    ...data.reigns.map((row) => [row[0], null, "reign", row]),
    ...data.outages.map((row) => [row[0], null, "outage", row]),
    ...data.disks.map((row) => [row[0], null, "disk", row]),
    ...data.logs.map((row) => [row[0], null, "log", row]),
    ...data.faults.map((row) => [row[0], null, "fault", row]),
    ...data.violations.map((row) => [row[0], null, "violation", row]),
  ].sort((first, second) => first[0] - second[0]));
  const isShown = (kind, row) =>
    kind === "message" ? !view.hiddenNames.has(row[4]) && !(row[6] && view.hideIdle)
      : kind === "disk" ? view.disks : kind === "log" ? view.logs : true;

  function step(direction) {
    const rows = everything.rows;
    let place = view.selected
      ? rows.findIndex((entry) => entry[3] === view.selected.row)
      : direction > 0 ? everything.after(view.from) - 1 : everything.after(view.to);
    do place += direction; while (rows[place] && !isShown(rows[place][2], rows[place][3]));
    if (!rows[place]) return;
    const [time, , kind, row] = rows[place];
    select({ kind, row });
    const width = view.to - view.from;
    if (time < view.from || time > view.to) show(time - width / 2, time + width / 2);
  }

  // --- pointer, wheel and keys ---------------------------------------------------------------

  let drag = null;
  const place = (event) => [event.offsetX, event.offsetY];
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.offsetX, from: view.from, to: view.to, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (drag) {
      const moved = event.offsetX - drag.x;
      if (Math.abs(moved) > 3) drag.moved = true;
      const time = (moved / (canvas.clientWidth - GUTTER)) * (drag.to - drag.from);
      if (drag.moved) show(drag.from - time, drag.to - time);
      return;
    }
    const target = picture.at(...place(event));
    canvas.style.cursor = target ? "pointer" : "grab";
    if (target && !view.selected) tell(target);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) select(picture.at(...place(event)));
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("dblclick", (event) => zoom(0.25, picture.time(event.offsetX, view)));
  canvas.addEventListener("wheel", (event) => {
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      shift((event.deltaX || event.deltaY) / 1000);
      return;
    }
    // With nothing left to zoom out of, the wheel is the page's again.
    if (event.deltaY > 0 && view.to - view.from >= whole.to - whole.from) return;
    event.preventDefault();
    zoom(Math.min(4, Math.max(0.25, Math.exp(event.deltaY * 0.002))), picture.time(Math.max(GUTTER, event.offsetX), view));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape") { select(null); return; }
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    actions[action]();
  });

  const glide = (event) => {
    const width = overview.clientWidth;
    const middle = whole.from + ((event.offsetX - GUTTER) / (width - GUTTER)) * (whole.to - whole.from);
    show(middle - (view.to - view.from) / 2, middle + (view.to - view.from) / 2);
  };
  overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); glide(event); });
  overview.addEventListener("pointermove", (event) => { if (event.buttons) glide(event); });

  // --- buttons and filters -------------------------------------------------------------------

  // The keys are the picture's: whoever has used a button goes on with them.
  const takeKeys = () => canvas.focus({ preventScroll: true });

  for (const button of document.querySelectorAll("button[data-timeline]")) {
    button.addEventListener("click", () => { actions[button.dataset.timeline](); takeKeys(); });
  }
  const spread = part("spread");
  spread.hidden = data.clients.length < 2;
  spread.addEventListener("click", () => {
    view.spread = !view.spread;
    spread.setAttribute("aria-expanded", String(view.spread));
    redraw();
    takeKeys();
  });

  function filter(text, swatch, checked, change) {
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = checked;
    box.addEventListener("change", () => { change(box.checked); redraw(); });
    label.append(box);
    if (swatch) {
      const sample = document.createElement("i");
      sample.style.background = "var(--" + swatch + ")";
      label.append(sample);
    }
    label.append(text);
    part("filters").append(label);
  }

  const counts = data.names.map(() => 0);
  let idle = 0;
  for (const row of data.messages) {
    counts[row[4]]++;
    if (row[6]) idle++;
  }
  for (const name of picture.families) {
    const own = [...data.names.keys()].filter((index) => picture.family(index) === name);
    const count = own.reduce((sum, index) => sum + counts[index], 0);
    // Some answers do not say to what.
    filter((name || "Answer") + " " + count.toLocaleString("en"), picture.colors[own[0]], true, (on) => {
      for (const index of own) on ? view.hiddenNames.delete(index) : view.hiddenNames.add(index);
    });
  }
  if (data.disks.length) filter("disk", "disk", true, (on) => { view.disks = on; });
  if (data.logs.length) filter("log", "ink-soft", true, (on) => { view.logs = on; });
  if (idle) {
    filter("hide the " + idle.toLocaleString("en") + " that carry nothing new", "", true, (on) => { view.hideIdle = on; });
  }

  part("box").hidden = false;
  new ResizeObserver(redraw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  if (data.violation == null) actions.whole();
  else toViolation();
  const first = data.violations.find((row) => row[0] === data.violation);
  if (first) tell({ kind: "violation", row: first });
})();
