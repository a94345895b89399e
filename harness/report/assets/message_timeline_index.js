// Finds what of a long timeline is in view without looking at the rest of it. Draws nothing.
"use strict";
(() => {
  const BLOCK = 64;

  // Rows in the order of their start, any of which may last: [start, end or null, ...].
  class Spans {
    constructor(rows, endOf = (row) => (row[1] == null ? row[0] : row[1])) {
      this.rows = rows;
      this.endOf = endOf;
      this.latest = [];
      for (let place = 0; place < rows.length; place++) {
        const block = Math.floor(place / BLOCK);
        const end = endOf(rows[place]);
        if (!(this.latest[block] >= end)) this.latest[block] = end;
      }
    }

    // Place of the first row that starts after a moment.
    after(moment) {
      let low = 0;
      let high = this.rows.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.rows[middle][0] <= moment) low = middle + 1;
        else high = middle;
      }
      return low;
    }

    // Calls back with each row that touches a stretch of time; returns how many it looked at.
    visit(from, to, callback) {
      const stop = this.after(to);
      let examined = 0;
      for (let block = 0; block * BLOCK < stop; block++) {
        if (this.latest[block] < from) continue;
        const last = Math.min(stop, (block + 1) * BLOCK);
        for (let place = block * BLOCK; place < last; place++) {
          examined++;
          if (this.endOf(this.rows[place]) >= from) callback(this.rows[place], place);
        }
      }
      return examined;
    }
  }

  // A round step of time in microseconds that gives at most so many ticks.
  function tickStep(width, count) {
    const rough = Math.max(1, width / Math.max(1, count));
    const power = 10 ** Math.floor(Math.log10(rough));
    const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= rough * 0.999);
    return Math.max(1, Math.round(factor * power));
  }

  // A moment in seconds, with as many digits as a step needs.
  function moment(time, step = 1) {
    const digits = Math.max(0, 6 - Math.floor(Math.log10(step) + 1e-9));
    const [whole, part] = (time / 1e6).toFixed(Math.min(6, digits)).split(".");
    if (!part) return whole + " s";
    // Thin spaces, so that six digits can be read.
    return whole + "." + (part.length > 3 ? part.slice(0, 3) + "\u2009" + part.slice(3) : part) + " s";
  }

  function duration(width) {
    if (width >= 1e6) return +(width / 1e6).toFixed(3) + " s";
    return width >= 1000 ? +(width / 1000).toFixed(3) + " ms" : Math.round(width) + " µs";
  }

  globalThis.messageTimeline = { Spans, tickStep, moment, duration };
})();
