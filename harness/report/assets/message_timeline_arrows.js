// Paints the messages of the timeline: arrows, or columns where arrows would be a blot.
"use strict";
(() => {
  const { GUTTER, LINE } = globalThis.messageTimeline;
  // In view: more than this many are drawn as columns, more as thin lines, more without names.
  const ARROWS_MAX = 2000, HEADS_MAX = 600, NAMES_MAX = 80;
  const COLUMN = 4;
  // Share of its way that a lost message is drawn for.
  const LOST_AT = 0.6;

  function drawMessages(picture, view) {
    const { cost } = picture;
    const shown = [];
    cost.examined += picture.messages.visit(view.from, view.to, (row) => {
      if (!view.hiddenNames.has(row[4]) && !(row[6] && view.hideIdle)) shown.push(row);
    });
    cost.inView = shown.length;
    if (shown.length > ARROWS_MAX) drawColumns(picture, shown, view);
    else drawArrows(picture, shown, view);
  }

  // Where an arrow runs, in pixels.
  function path(picture, row, view) {
    const [sent, arrived, sender, receiver] = row;
    const y0 = picture.top(sender, view) + LINE;
    const y1 = picture.top(receiver, view) + LINE;
    const x0 = picture.x(sent, view);
    if (arrived != null) return [x0, y0, picture.x(arrived, view), y1];
    return [x0, y0, picture.x(sent + picture.flight * LOST_AT, view), y0 + (y1 - y0) * LOST_AT];
  }

  function inkOf(picture, row) {
    if (row[5] === "arrived") return picture.colors[row[4]];
    return row[5] === "refused" ? "refused" : "invalid";
  }

  function drawArrows(picture, shown, view) {
    const { context, palette, cost } = picture;
    const crowded = shown.length > HEADS_MAX;
    const free = new Map();
    for (const row of shown) {
      const [x0, y0, x1, y1] = path(picture, row, view);
      const [, arrived, , , , fate] = row;
      const gone = arrived == null && fate !== "arrived";
      const stroke = palette[inkOf(picture, row)];
      context.globalAlpha = crowded ? 0.6 : 1;
      context.setLineDash(arrived == null ? [4, 3] : []);
      picture.line(x0, y0, x1, y1, stroke, crowded ? 0.8 : 1.4);
      context.setLineDash([]);
      context.fillStyle = stroke;
      if (gone) cross(picture, x1, y1, crowded ? 2 : 4, stroke);
      else if (arrived != null && !crowded) head(context, x0, y0, x1, y1);
      context.globalAlpha = 1;
      picture.targets.push({ kind: "message", row, x0, y0, x1, y1 });
      cost.arrows++;
      cost.drawn++;
    }
    if (shown.length > NAMES_MAX) return;
    for (const row of shown) nameArrow(picture, row, view, free);
  }

  function head(context, x0, y0, x1, y1) {
    const angle = Math.atan2(y1 - y0, x1 - x0);
    context.beginPath();
    context.moveTo(x1, y1);
    for (const turn of [-0.4, 0.4]) {
      context.lineTo(x1 - 8 * Math.cos(angle + turn), y1 - 8 * Math.sin(angle + turn));
    }
    context.fill();
  }

  function cross(picture, x, y, arm, stroke) {
    for (const turn of [-1, 1]) picture.line(x - arm, y - arm * turn, x + arm, y + arm * turn, stroke, arm / 2);
  }

  // The name stands above the line of the lower of the two lanes, where nothing else does.
  function nameArrow(picture, row, view, free) {
    const [x0, y0, x1, y1] = path(picture, row, view);
    const low = Math.max(y0, y1);
    const y = low - 9;
    const part = y1 === y0 ? 0 : (y - y0) / (y1 - y0);
    const x = x0 + (x1 - x0) * Math.min(1, Math.max(0, part)) + 7;
    const name = picture.data.names[row[4]];
    if (x < (free.get(low) ?? -Infinity) || x < GUTTER) return;
    picture.label(name, x, y, 200, picture.palette[inkOf(picture, row)]);
    free.set(low, x + picture.wide(name) + 10);
  }

  // How many messages each lane sent, a column for every few pixels of time.
  function drawColumns(picture, shown, view) {
    const { context, palette, cost } = picture;
    cost.mode = "columns";
    const lanes = new Map();
    let most = 1;
    for (const row of shown) {
      const bin = Math.floor((picture.x(row[0], view) - GUTTER) / COLUMN);
      if (bin < 0) continue;
      const lane = picture.lane(row[2], view);
      if (!lanes.has(lane)) lanes.set(lane, new Map());
      const bins = lanes.get(lane);
      const [count, lost] = bins.get(bin) ?? [0, 0];
      bins.set(bin, [count + 1, lost + (row[5] === "arrived" ? 0 : 1)]);
      most = Math.max(most, count + 1);
    }
    const height = (count) => (count ? Math.max(2, (count / most) * (LINE - 2)) : 0);
    for (const [lane, bins] of lanes) {
      const bottom = picture.top(lane, view) + LINE;
      for (const [bin, [count, lost]] of bins) {
        const x = GUTTER + bin * COLUMN;
        context.fillStyle = palette["message-1"];
        context.fillRect(x, bottom - height(count), COLUMN - 1, height(count));
        context.fillStyle = palette.invalid;
        context.fillRect(x, bottom - height(lost), COLUMN - 1, height(lost));
        const row = [picture.time(x, view), picture.time(x + COLUMN, view), lane, count, lost];
        picture.aim("column", row, x, bottom - LINE, COLUMN, LINE);
        cost.drawn++;
      }
    }
  }

  // What was clicked, over everything else.
  function drawSelected(picture, view) {
    const { context, palette } = picture;
    const { kind, row } = view.selected;
    if (kind === "message") {
      const [x0, y0, x1, y1] = path(picture, row, view);
      picture.line(x0, y0, x1, y1, palette.ink, 3);
      context.fillStyle = palette.ink;
      if (row[1] != null) head(context, x0, y0, x1, y1);
      return;
    }
    context.strokeStyle = palette.ink;
    context.lineWidth = 2;
    for (const target of picture.targets) {
      if (target.row === row && kind !== "violation") {
        context.strokeRect(target.left, target.top, target.width, target.height);
      }
    }
  }

  Object.assign(globalThis.messageTimeline, { drawMessages, drawSelected });
})();
