// Draws the operations around a violation: bars per process, faults and leaders as bands, zoom.
"use strict";
(() => {
  const holder = document.getElementById("operations-view-data");
  if (!holder) return;
  const views = JSON.parse(holder.textContent).views;
  const frame = document.getElementById("view-frame");
  const canvas = document.getElementById("view-canvas");
  const told = document.getElementById("view-told");
  const choice = document.getElementById("view-choice");
  const paint = canvas.getContext("2d");
  const ROW = 24, BAR = 16, AXIS = 26, STRIP = 18, CHARACTER = 7.3;
  const hint = told.textContent;
  let view, from, to, column = 0, spot = -1, held = null, order = [];

  const color = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const names = () => Math.min(canvas.clientWidth < 560 ? 74 : 170, column);
  const strip = () => STRIP * lanes(view.leaders).count;
  const top = () => AXIS + strip();
  const place = (moment) =>
    names() + ((moment - from) / (to - from)) * (canvas.clientWidth - names());
  const momentAt = (x) => from + ((x - names()) / (canvas.clientWidth - names())) * (to - from);

  function show(number) {
    view = views[number];
    // What contradicts is drawn last, above the others.
    order = view.row.map((_, at) => at).sort((one, other) => view.role[one] - view.role[other]);
    for (const note of document.querySelectorAll("[data-view-note]"))
      note.hidden = note.dataset.viewNote !== String(number);
    if (choice) choice.value = String(number);
    const longest = Math.max(...view.rows.map((name) => name.length - "process ".length), 7);
    column = 14 + longest * CHARACTER;
    spot = -1;
    focus();
  }

  // Two leaders of one moment stand below each other.
  function lanes(leaders) {
    const ends = [];
    const places = leaders.map(([, , start, end]) => {
      let lane = ends.findIndex((until) => until <= start);
      if (lane < 0) lane = ends.length;
      ends[lane] = end;
      return lane;
    });
    return { places, count: ends.length };
  }

  function focus() {
    const wide = view.focus[1] - view.focus[0] || (view.span[1] - view.span[0]) / 20 || 1;
    set(view.focus[0] - wide * 0.25, view.focus[1] + wide * 0.35);
    frame.scrollTop = 0;
  }

  function all() {
    const edge = (view.span[1] - view.span[0]) * 0.03;
    set(view.span[0] - edge, view.span[1] + edge);
  }

  function set(newFrom, newTo) {
    const whole = view.span[1] - view.span[0] || 1;
    const wide = Math.min(Math.max(newTo - newFrom, whole * 1e-7), whole * 1.1);
    const low = view.span[0] - whole * 0.05, high = view.span[1] + whole * 0.05;
    from = Math.min(Math.max(newFrom, low), high - wide);
    to = from + wide;
    draw();
  }

  function zoom(factor, around = (from + to) / 2) {
    set(around - (around - from) * factor, around + (to - around) * factor);
  }

  const move = (share) => set(from + (to - from) * share, to + (to - from) * share);

  function words(moment) {
    if (!view.timed) return "event " + Math.round(moment);
    const wide = to - from;
    const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(wide / 20))));
    return moment.toFixed(digits) + " s";
  }

  function draw() {
    const width = canvas.clientWidth, height = top() + view.rows.length * ROW + 6;
    const ratio = devicePixelRatio || 1;
    canvas.style.height = height + "px";
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    paint.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint.clearRect(0, 0, width, height);
    paint.font = "12px ui-monospace, Menlo, 'Liberation Mono', monospace";
    paint.textBaseline = "middle";
    paint.save();
    paint.beginPath();
    paint.rect(names(), 0, width - names(), height);
    paint.clip();
    drawTicks(width, height);
    drawFaults(height);
    drawLeaders();
    drawRules(width);
    for (const at of order) drawBar(at, width);
    paint.restore();
    drawNames();
    document.documentElement.dataset.operationsView = from + " " + to;
  }

  function drawTicks(width, height) {
    const room = (words(to).length + 3) * CHARACTER;
    const rough = ((to - from) * room) / Math.max(1, width - names());
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough);
    for (let tick = Math.ceil(from / step) * step; tick < to; tick += step) {
      const x = place(tick);
      paint.fillStyle = color("line");
      paint.fillRect(x, AXIS - 4, 1, height);
      paint.fillStyle = color("ink-soft");
      paint.fillText(words(tick), x + 3, AXIS / 2);
    }
  }

  function drawFaults(height) {
    view.faults.forEach(([label, start, end], number) => {
      const left = place(start), right = Math.max(place(end), place(start) + 2);
      if (right < names() || left > canvas.clientWidth) return;
      paint.fillStyle = color("band");
      paint.fillRect(left, AXIS, right - left, height);
      paint.fillStyle = color("band-edge");
      paint.fillRect(left, AXIS, 1, height);
      paint.fillRect(right - 1, AXIS, 1, height);
      const room = Math.min(right, canvas.clientWidth) - Math.max(left, names());
      if (label.length * CHARACTER + 8 > room) return;
      paint.fillStyle = color("ink-soft");
      paint.fillText(label, Math.max(left, names()) + 4, height - 8 - 14 * (number % 3));
    });
  }

  function drawLeaders() {
    const { places } = lanes(view.leaders);
    for (const [number, [node, epoch, start, end]] of view.leaders.entries()) {
      const upper = AXIS + STRIP * places[number];
      const left = Math.max(place(start), names()), right = Math.min(place(end), canvas.clientWidth);
      if (right <= left) continue;
      paint.fillStyle = color("epoch-" + ((epoch % 6) + 1));
      paint.fillRect(left, upper, Math.max(right - left - 1, 1), STRIP - 4);
      const label = `${node} leads epoch ${epoch}`;
      const text = [label, node].find((one) => one.length * CHARACTER + 8 < right - left);
      paint.fillStyle = "#fff";
      if (text) paint.fillText(text, left + 4, upper + (STRIP - 4) / 2);
    }
  }

  function drawRules(width) {
    paint.fillStyle = color("line");
    for (let row = 0; row < view.rows.length; row++)
      paint.fillRect(names(), top() + row * ROW + ROW / 2, width, 1);
  }

  function box(at) {
    const left = place(view.start[at]);
    const end = view.end[at];
    const right = end === null ? canvas.clientWidth + 20 : Math.max(place(end), left + 2);
    return { left, right, y: top() + view.row[at] * ROW + (ROW - BAR) / 2 };
  }

  function drawBar(at, width) {
    const { left, right, y } = box(at);
    if (right < names() || left > width) return;
    const role = view.role[at], open = view.end[at] === null;
    // Coordinates far outside cost the canvas its precision.
    const begin = Math.max(left, names() - 9), end = Math.min(right, width + 9);
    paint.fillStyle = role === 2 ? color("invalid") : role ? color("invalid-soft") : color("code");
    paint.strokeStyle = role ? color("invalid") : color("ink-soft");
    paint.lineWidth = at === spot ? 3 : role ? 2 : 1;
    paint.setLineDash(open ? [4, 3] : []);
    paint.fillRect(begin, y, end - begin, BAR);
    paint.strokeRect(begin, y, end - begin, BAR);
    paint.setLineDash([]);
    const seen = Math.max(left, names()) + 4, room = Math.min(right, width) - seen;
    const text = fitting(view.label[at], room);
    paint.fillStyle = role === 2 ? color("card") : color("ink");
    if (text) paint.fillText(text, seen, y + BAR / 2 + 1);
    else if (role) drawBeside(at, right + 5, y, width);
    if (open) paint.fillText("→", width - 12, y + BAR / 2 + 1);
  }

  // What contradicts is named also where its bar is too short for it, if nothing is in the way.
  function drawBeside(at, x, y, width) {
    const wide = view.label[at].length * CHARACTER;
    const near = view.row.some((row, other) => {
      if (row !== view.row[at] || other === at) return false;
      const { left, right } = box(other);
      return right > x && left < x + wide;
    });
    if (near || x + wide > width) return;
    paint.fillStyle = color("invalid");
    paint.fillText(view.label[at], x, y + BAR / 2 + 1);
  }

  function fitting(label, room) {
    const characters = Math.floor(room / CHARACTER);
    if (label.length <= characters) return label;
    return characters >= 4 ? label.slice(0, characters - 1) + "…" : "";
  }

  function drawNames() {
    paint.fillStyle = color("card");
    paint.fillRect(0, 0, names(), canvas.height);
    paint.fillStyle = color("ink-soft");
    paint.fillText("process", 6, AXIS / 2);
    view.rows.forEach((name, row) =>
      paint.fillText(
        fitting(name.slice("process ".length), names() - 8),
        6, top() + row * ROW + ROW / 2,
      ),
    );
  }

  function find(event) {
    const area = canvas.getBoundingClientRect();
    const x = event.clientX - area.left, y = event.clientY - area.top;
    if (x < names()) return -1;
    for (let last = order.length - 1; last >= 0; last--) {
      const { left, right, y: upper } = box(order[last]);
      if (x >= left - 2 && x <= right + 2 && y >= upper - 2 && y <= upper + BAR + 2)
        return order[last];
    }
    return -1;
  }

  function tell(at) {
    if (at === spot) return;
    spot = at;
    if (at < 0) told.textContent = hint;
    else {
      const end = view.end[at] === null ? "never answered" : words(view.end[at]);
      const role = ["", ", contradicts", ", has no place"][view.role[at]];
      told.textContent = `${view.label[at]} by ${view.rows[view.row[at]]}, index ` +
        `${view.index[at]}, ${words(view.start[at])} to ${end}${role}`;
    }
    draw();
  }

  const acts = {
    focus, all, in: () => zoom(0.5), out: () => zoom(2),
    left: () => move(-0.3), right: () => move(0.3),
  };
  for (const button of document.querySelectorAll("[data-view]"))
    button.addEventListener("click", () => acts[button.dataset.view]());
  const keys = { ArrowLeft: "left", ArrowRight: "right", "+": "in", "-": "out", "0": "all" };
  frame.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    acts[act]();
  });
  frame.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const x = event.clientX - canvas.getBoundingClientRect().left;
    zoom(event.deltaY > 0 ? 1.25 : 0.8, momentAt(x));
  }, { passive: false });
  frame.addEventListener("pointerdown", (event) => {
    held = { x: event.clientX, from, to };
    frame.classList.add("held");
  });
  frame.addEventListener("pointermove", (event) => {
    if (!held) return tell(find(event));
    const moved = ((event.clientX - held.x) / (canvas.clientWidth - names())) * (held.to - held.from);
    set(held.from - moved, held.to - moved);
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave"])
    frame.addEventListener(end, () => { held = null; frame.classList.remove("held"); });
  if (choice) choice.addEventListener("change", () => show(Number(choice.value)));
  for (const button of document.querySelectorAll("[data-show-view]"))
    button.addEventListener("click", () => {
      show(Number(button.dataset.showView));
      frame.scrollIntoView({ block: "center" });
    });

  // Brings one operation into the middle, for the search.
  function reveal(number, at) {
    if (view !== views[number]) show(number);
    const wide = to - from, middle = view.start[at];
    set(middle - wide / 2, middle + wide / 2);
    frame.scrollTop = Math.max(0, view.row[at] * ROW - frame.clientHeight / 2);
    frame.scrollIntoView({ block: "center" });
    tell(at);
  }
  globalThis.operationsView = { views, reveal };
  new ResizeObserver(() => draw()).observe(frame);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  show(0);
})();
