// Where things of the timeline stand: lanes downwards, time to the right. Also what every part of
// the picture draws with, and what of the last frame lies under the pointer.
"use strict";
(() => {
  const { Spans } = globalThis.messageTimeline;
  // Pixels: room for the names, above the first lane, of a node's lane and of a client's, and in a
  // lane from its top to its line, its band of roles and its marks.
  const GUTTER = 76, TOP = 34, NODE = 78, CLIENT = 40;
  const LINE = 22, BAND = 32, BAND_HEIGHT = 18, MARKS = 54;
  const FONT = "12px system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', sans-serif";
  // Colours of messages, before they repeat.
  const COLORS = 8;
  // How far from an arrow a pointer may be, in pixels.
  const REACH = 6;

  class Lanes {
    constructor(canvas, data) {
      this.canvas = canvas;
      this.context = canvas.getContext("2d");
      this.data = data;
      const flights = data.messages.filter((row) => row[1] != null).map((row) => row[1] - row[0]);
      flights.sort((first, second) => first - second);
      // A lost message is drawn as if it had been on its way for as long as most are.
      this.flight = flights.length ? flights[flights.length >> 1] : 1000;
      this.messages = new Spans(data.messages, (row) => row[1] ?? row[0] + this.flight);
      for (const name of ["reigns", "outages", "disks", "logs", "faults", "violations"]) {
        this[name] = new Spans(data[name], name === "violations" ? (row) => row[0] : undefined);
      }
      // A question and its answer are one family, and have one colour.
      this.families = [...new Set(data.names.map((_, name) => this.family(name)))];
      this.colors = data.names.map(
        (_, name) => "message-" + ((this.families.indexOf(this.family(name)) % COLORS) + 1));
      this.targets = [];
    }

    color(name) {
      return getComputedStyle(this.canvas).getPropertyValue("--" + name).trim();
    }

    family(name) {
      return this.data.names[name].replace(/Answer$/, "");
    }

    count(view) {
      const { nodes, clients } = this.data;
      return nodes.length + (view.spread ? clients.length : Math.min(1, clients.length));
    }

    // Lane in which a node or client is drawn; all clients share one until they are spread.
    lane(index, view) {
      return view.spread ? index : Math.min(index, this.data.nodes.length);
    }

    top(index, view) {
      const lane = this.lane(index, view);
      const nodes = Math.min(lane, this.data.nodes.length);
      return TOP + nodes * NODE + (lane - nodes) * CLIENT;
    }

    tall(index) {
      return index < this.data.nodes.length ? NODE : CLIENT;
    }

    height(view) {
      const last = this.count(view) - 1;
      return (last < 0 ? TOP : this.top(last, view) + this.tall(last)) + 4;
    }

    x(time, view) {
      return GUTTER + ((time - view.from) / (view.to - view.from)) * (this.width - GUTTER);
    }

    time(x, view) {
      return view.from + ((x - GUTTER) / (this.width - GUTTER)) * (view.to - view.from);
    }

    // Left and right of what lasts, cut to the picture and never thinner than a line.
    clamped(start, end, view) {
      const left = Math.max(this.x(start, view), GUTTER - 4);
      return [left, Math.max(left + 2, Math.min(this.x(end, view), this.width + 4))];
    }

    laneName(lane, view) {
      const { nodes, clients } = this.data;
      if (lane < nodes.length) return nodes[lane];
      if (view.spread || clients.length === 1) return clients[lane - nodes.length];
      return clients.length + " clients";
    }

    line(x0, y0, x1, y1, stroke, width) {
      const { context } = this;
      context.strokeStyle = stroke;
      context.lineWidth = width;
      context.beginPath();
      context.moveTo(x0, y0);
      context.lineTo(x1, y1);
      context.stroke();
    }

    wide(text) {
      return this.context.measureText(text).width;
    }

    // The text, or as much of its beginning as there is room for.
    fit(text, room) {
      if (this.wide(text) <= room) return text;
      let keep = Math.min(text.length, 60);
      while (keep > 0 && this.wide(text.slice(0, keep) + "…") > room) keep--;
      return keep > 1 ? text.slice(0, keep) + "…" : "";
    }

    // Text with a border of the ground's colour, so that no line crosses it.
    label(text, x, y, room, ink) {
      const { context } = this;
      const shown = this.fit(text, room);
      context.textAlign = "left";
      context.lineWidth = 4;
      context.lineJoin = "round";
      context.strokeStyle = this.palette.card;
      context.strokeText(shown, x, y);
      context.fillStyle = ink;
      context.fillText(shown, x, y);
    }

    aim(kind, row, left, top, width, height) {
      this.targets.push({ kind, row, left, top, width, height });
    }

    // What of the last frame is nearest to a point, null where there is nothing.
    at(x, y) {
      let arrow = null;
      let least = REACH;
      let box = null;
      for (const target of this.targets) {
        if (target.kind === "message") {
          const distance = away(target, x, y);
          if (distance < least) [least, arrow] = [distance, target];
        } else if (x >= target.left && x <= target.left + target.width &&
          y >= target.top && y <= target.top + target.height && box?.kind !== "violation") {
          box = target;
        }
      }
      if (box?.kind === "violation") return box;
      return arrow && (least < REACH / 2 || !box) ? arrow : box;
    }
  }

  // Distance of a point from an arrow.
  function away({ x0, y0, x1, y1 }, x, y) {
    const dx = x1 - x0, dy = y1 - y0;
    const part = ((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy || 1);
    const near = Math.max(0, Math.min(1, part));
    return Math.hypot(x - x0 - near * dx, y - y0 - near * dy);
  }

  Object.assign(globalThis.messageTimeline, {
    Lanes, GUTTER, TOP, LINE, BAND, BAND_HEIGHT, MARKS, FONT,
  });
})();
