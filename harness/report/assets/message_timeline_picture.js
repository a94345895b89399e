// Paints a frame of the timeline. Touches only what is in view and says what that cost.
"use strict";
(() => {
  const {
    Lanes, GUTTER, TOP, LINE, BAND, BAND_HEIGHT, MARKS, FONT, tickStep, moment, drawMessages, drawSelected,
  } = globalThis.messageTimeline;
  const ROLES = ["leader", "candidate", "prospective", "follower", "unattached", "resigned"];
  // Marks of disks and logs in view that can still be told apart.
  const MARKS_MAX = 400;
  const COLORS = [
    "ink", "ink-soft", "line", "card", "page", "invalid", "refused", "fault", "fault-edge", "fault-ink", "down", "disk",
    ...[1, 2, 3, 4, 5, 6, 7, 8].map((number) => "message-" + number),
    ...[1, 2, 3, 4, 5, 6].map((number) => "epoch-" + number),
    ...[...ROLES, "other"].flatMap((role) => ["role-" + role, "on-role-" + role]),
  ];

  class Picture extends Lanes {
    // One frame; returns how many rows were looked at and how many things drawn.
    draw(view) {
      const ratio = globalThis.devicePixelRatio || 1;
      const { canvas, context } = this;
      this.width = canvas.clientWidth;
      const height = this.height(view);
      canvas.style.height = height + "px";
      canvas.width = Math.round(this.width * ratio);
      canvas.height = Math.round(height * ratio);
      this.palette = Object.fromEntries(COLORS.map((name) => [name, this.color(name)]));
      this.targets = [];
      this.cost = { examined: 0, drawn: 0, arrows: 0, inView: 0, mode: "arrows" };
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.font = FONT;
      context.textBaseline = "middle";
      this.drawGround(view, height);
      context.save();
      context.beginPath();
      context.rect(GUTTER, 0, this.width - GUTTER, height);
      context.clip();
      const down = this.inView("outages", view);
      this.drawFaults(view);
      this.drawLines(view, down);
      const reigns = this.inView("reigns", view);
      this.drawReigns(view, reigns);
      this.drawOutages(view, down);
      this.drawMarks(view);
      drawMessages(this, view);
      this.nameReigns(view, reigns);
      this.drawViolations(view, height);
      if (view.selected) drawSelected(this, view);
      context.restore();
      return this.cost;
    }

    inView(name, view) {
      const found = [];
      this.cost.examined += this[name].visit(view.from, view.to, (row) => found.push(row));
      this.cost.drawn += found.length;
      return found;
    }

    drawGround(view, height) {
      const { context, palette } = this;
      const step = tickStep(view.to - view.from, (this.width - GUTTER) / 120);
      context.textAlign = "center";
      for (let tick = Math.ceil(view.from / step) * step; tick <= view.to; tick += step) {
        const x = Math.round(this.x(tick, view)) + 0.5;
        this.line(x, TOP - 10, x, height, palette.line, 1);
        context.fillStyle = palette["ink-soft"];
        if (x > GUTTER + 24 && x < this.width - 36) context.fillText(moment(tick, step), x, 9);
      }
      context.textAlign = "right";
      context.font = "600 " + FONT;
      for (let lane = 0; lane < this.count(view); lane++) {
        const top = this.top(lane, view);
        const bottom = top + this.tall(lane) - 0.5;
        this.line(0, bottom, this.width, bottom, palette.line, 1);
        context.fillStyle = palette.ink;
        context.fillText(this.fit(this.laneName(lane, view), GUTTER - 14), GUTTER - 9, top + LINE);
      }
      context.font = FONT;
    }

    // A lane's line, with gaps where the node was down.
    drawLines(view, down) {
      for (let lane = 0; lane < this.count(view); lane++) {
        const y = this.top(lane, view) + LINE;
        let from = GUTTER;
        for (const [start, end, whose, event] of down) {
          if (whose !== lane || event === "paused") continue;
          this.line(from, y, Math.max(from, this.x(start, view)), y, this.palette["ink-soft"], 1);
          from = Math.max(from, this.x(end, view));
        }
        if (from < this.width) this.line(from, y, this.width, y, this.palette["ink-soft"], 1);
      }
    }

    drawFaults(view) {
      const { context, palette } = this;
      const free = new Map();
      for (const row of this.inView("faults", view)) {
        const [start, end, lanes, name] = row;
        const [left, right] = this.clamped(start, end, view);
        for (const lane of lanes.length ? lanes : this.data.nodes.keys()) {
          const top = this.top(lane, view);
          const tall = this.tall(lane) - 1;
          context.fillStyle = palette.fault;
          context.fillRect(left, top, right - left, tall);
          context.fillStyle = palette["fault-edge"];
          context.fillRect(left, top, 1.5, tall);
          context.fillRect(right - 1.5, top, 1.5, tall);
          const from = Math.max(left, GUTTER) + 5;
          context.textAlign = "left";
          context.fillStyle = palette["fault-ink"];
          // Of faults that overlap, the one that began first is named.
          const text = from < (free.get(lane) ?? 0) ? "" : this.fit(name, right - from - 3);
          if (text) free.set(lane, from + this.wide(text) + 6);
          context.fillText(text, from, top + 9);
          this.aim("fault", row, left, top, right - left, 16);
        }
      }
    }

    drawReigns(view, reigns) {
      const { context, palette } = this;
      for (const row of reigns) {
        const [start, end, lane, role, epoch] = row;
        const [left, right] = this.clamped(start, end, view);
        const top = this.top(lane, view) + BAND;
        context.fillStyle = palette["role-" + known(role)];
        context.fillRect(left, top, right - left, BAND_HEIGHT - 3);
        context.fillStyle = palette["epoch-" + ((epoch % 6) + 1)];
        context.fillRect(left, top + BAND_HEIGHT - 3, right - left, 3);
        context.fillStyle = palette.card;
        if (right - left > 4) context.fillRect(right - 1, top, 1, BAND_HEIGHT);
        this.aim("reign", row, left, top, right - left, BAND_HEIGHT);
      }
    }

    // Their words, over the arrows that cross the band.
    nameReigns(view, reigns) {
      const { context, palette } = this;
      context.textAlign = "left";
      for (const [start, end, lane, role, epoch] of reigns) {
        const [left, right] = this.clamped(start, end, view);
        const from = Math.max(left, GUTTER) + 5;
        const texts = [role + " · epoch " + epoch, role + " " + epoch, "" + epoch];
        const text = texts.find((one) => this.wide(one) <= right - from - 5);
        if (!text) continue;
        const top = this.top(lane, view) + BAND;
        context.fillStyle = palette["role-" + known(role)];
        context.fillRect(from - 4, top, this.wide(text) + 8, BAND_HEIGHT - 3);
        context.fillStyle = palette["on-role-" + known(role)];
        context.fillText(text, from, top + (BAND_HEIGHT - 3) / 2 + 0.5);
      }
    }

    drawOutages(view, down) {
      const { context, palette } = this;
      for (const row of down) {
        const [start, end, lane, event] = row;
        const [left, right] = this.clamped(start, end, view);
        const top = this.top(lane, view) + BAND;
        context.save();
        context.beginPath();
        context.rect(left, top, right - left, BAND_HEIGHT);
        context.clip();
        // What is paused still has its role: it shines through.
        context.globalAlpha = event === "paused" ? 0.5 : 1;
        context.fillStyle = palette.page;
        context.fillRect(left, top, right - left, BAND_HEIGHT);
        context.globalAlpha = 1;
        context.strokeStyle = palette.down;
        context.lineWidth = 1.5;
        context.beginPath();
        for (let x = Math.floor(left / 7) * 7 - 21; x < right; x += 7) {
          context.moveTo(x, top + BAND_HEIGHT);
          context.lineTo(x + BAND_HEIGHT, top);
        }
        context.stroke();
        context.restore();
        const middle = Math.max(left, GUTTER) / 2 + Math.min(right, this.width) / 2;
        const wide = this.wide(event);
        if (wide < right - left - 8) this.label(event, middle - wide / 2, top + BAND_HEIGHT / 2, wide, palette.ink);
        this.aim("outage", row, left, top, right - left, BAND_HEIGHT);
      }
    }

    // Disks in the upper row below the band, logs in the lower one.
    drawMarks(view) {
      for (const [kind, wanted] of [["disks", view.disks], ["logs", view.logs]]) {
        if (!wanted) continue;
        const found = [];
        this.cost.examined += this[kind].visit(view.from, view.to, (row) => found.push(row));
        // Of too many only what went wrong is worth its place.
        const drawn = found.length <= MARKS_MAX ? found : found.filter(isBad);
        const next = new Map();
        // From the right, so that the room up to the next mark is known.
        for (const row of drawn.reverse()) this.drawMark(kind === "disks" ? "disk" : "log", row, view, next);
        this.cost.drawn += drawn.length;
      }
    }

    drawMark(kind, row, view, next) {
      const { context, palette } = this;
      const [start, end, lane, name, offset] = row;
      const x = this.x(start, view);
      const right = end == null ? x + 2 : Math.max(this.x(end, view), x + 2);
      const top = this.top(lane, view) + MARKS + (kind === "disk" ? 0 : 11);
      const bad = isBad(row);
      context.fillStyle = bad ? palette.invalid : palette[kind === "disk" ? "disk" : "ink-soft"];
      if (kind === "disk") context.fillRect(x, top, right - x, 7);
      else context.fillRect(x, top, 1.5, 8);
      const text = kind === "disk" ? name : (name === "high-watermark" ? "hw " : name + " ") + offset;
      context.font = FONT.replace("12px", "11px");
      const from = Math.max(right, GUTTER) + 4;
      // A flush too short to be seen as a bar needs no name, unless it failed.
      const worth = kind === "log" || bad || end == null || right - x >= 14;
      if (worth && from + this.wide(text) + 4 < (next.get(lane) ?? Infinity)) {
        context.textAlign = "left";
        context.fillStyle = bad ? palette.invalid : palette["ink-soft"];
        context.fillText(text, from, top + 4);
      }
      context.font = FONT;
      next.set(lane, x);
      this.aim(kind, row, x - 2, top - 2, Math.max(right - x, 6) + 2, 11);
    }

    drawViolations(view, height) {
      const { context, palette } = this;
      let free = -Infinity;
      for (const row of this.inView("violations", view)) {
        const [time, lane, name] = row;
        const x = this.x(time, view);
        this.line(x, 18, x, height, palette.invalid, 2.5);
        this.aim("violation", row, x - 4, 0, 8, height);
        context.fillStyle = palette.invalid;
        if (lane != null) {
          context.beginPath();
          context.arc(x, this.top(lane, view) + LINE, 6, 0, 7);
          context.fill();
        }
        const wide = this.wide(name) + 12;
        const left = Math.max(GUTTER, Math.min(x - 1, this.width - wide));
        if (left < free) continue;
        context.fillRect(left, 17, wide, 17);
        context.textAlign = "left";
        context.fillStyle = palette.card;
        context.fillText(name, left + 6, 26);
        this.aim("violation", row, left, 17, wide, 17);
        free = left + wide + 2;
      }
    }
  }

  const known = (role) => (ROLES.includes(role) ? role : "other");
  const isBad = (row) => row[3] === "truncate" || /fail|error|torn|lost/.test(row[3]);

  globalThis.messageTimeline.Picture = Picture;
})();
