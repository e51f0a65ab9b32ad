"use strict";

// Draws the weights of an alignment on a canvas. The canvas has the size of the
// visible part, so large matrices are drawn quickly too. For the keyboard and
// screen readers one element represents the current cell.

const LARGEST = 32; // side of a cell, in CSS pixels
const SMALLEST = 24;
const GAP = 2;
const FONT = 14;

class Matrix {
  // `parts`: the scrolling box, and inside it extent, canvas, row and cell.
  // `point(row, column)` is called with the current cell.
  constructor(parts, point) {
    Object.assign(this, parts, { point, rows: [], columns: [] });
    this.paint = this.canvas.getContext("2d");
    const redraw = () => this.soon();
    this.box.addEventListener("scroll", redraw, { passive: true });
    new ResizeObserver(redraw).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener(
      "change", redraw);
    for (const kind of ["pointermove", "pointerdown"]) {
      this.box.addEventListener(kind, (event) => this.pointed(event));
    }
    this.cell.addEventListener("focus", () => this.read(this.at, true));
    this.cell.addEventListener("keydown", (event) => this.walk(event));
  }

  show(rows, columns, weights) {
    Object.assign(this, { rows, columns, at: [0, 0], read_once: false });
    // One weight per pair of words, whatever the response contains.
    this.weights = rows.map((_, r) =>
      columns.map((_, c) => Number(weights[r]?.[c] ?? 0)));
    this.box.hidden = !rows.length || !columns.length;
    this.extent.setAttribute("aria-rowcount", rows.length);
    this.extent.setAttribute("aria-colcount", columns.length);
    this.box.scrollTo(0, 0);
    this.draw();
  }

  soon() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  // Measures the headings and sets the size of the cells.
  measure() {
    const { box, paint } = this;
    this.font = `${FONT}px ${getComputedStyle(box).fontFamily}`;
    paint.font = this.font;
    const widest = (words, most) => {
      let width = 0;
      for (const word of words) {
        width = Math.max(width, paint.measureText(word).width);
        if (width >= most) return most;
      }
      return Math.ceil(width) + 8;
    };
    const room = box.clientWidth;
    this.left = widest(this.rows, Math.min(144, room * 0.3));
    this.top = widest(this.columns, 128);
    const side = Math.floor((room - this.left) / this.columns.length);
    this.side = Math.min(LARGEST, Math.max(SMALLEST, side));
  }

  draw() {
    if (this.box.hidden || !this.box.clientWidth) return;
    this.measure();
    const { box, canvas, extent, left, top, side } = this;
    const width = left + side * this.columns.length;
    const height = top + side * this.rows.length;
    extent.style.width = `${width}px`;
    extent.style.height = `${height}px`;
    const seen = {
      width: Math.min(width, box.clientWidth),
      height: Math.min(height, box.clientHeight),
    };
    const scale = devicePixelRatio;
    canvas.width = Math.round(seen.width * scale);
    canvas.height = Math.round(seen.height * scale);
    canvas.style.width = `${seen.width}px`;
    canvas.style.height = `${seen.height}px`;
    this.paint.setTransform(scale, 0, 0, scale, 0, 0);
    this.paint.font = this.font; // reset by the new size
    this.place();
    this.drawCells(seen);
    this.drawHeadings(seen);
  }

  // Returns the range of the visible rows or columns.
  range(start, end, count) {
    const last = Math.ceil(end / this.side);
    return [Math.floor(start / this.side), Math.min(count, last)];
  }

  colour(name) {
    return getComputedStyle(this.box).getPropertyValue(name);
  }

  clipped(x, y, seen, drawn) {
    this.paint.save();
    this.paint.beginPath();
    this.paint.rect(x, y, seen.width - x, seen.height - y);
    this.paint.clip();
    drawn();
    this.paint.restore();
  }

  drawCells(seen) {
    const { paint, box, left, top, side, weights } = this;
    const { scrollLeft: x, scrollTop: y } = box;
    const ground = this.colour("--cell"), accent = this.colour("--accent");
    const [r0, r1] = this.range(y, y + seen.height - top, this.rows.length);
    const [c0, c1] = this.range(x, x + seen.width - left, this.columns.length);
    this.clipped(left, top, seen, () => {
      const size = side - GAP;
      for (let r = r0; r < r1; r++) {
        for (let c = c0; c < c1; c++) {
          const place = [left + c * side - x, top + r * side - y, size, size];
          paint.fillStyle = ground;
          paint.fillRect(...place);
          paint.fillStyle = accent;
          paint.globalAlpha = weights[r][c];
          paint.fillRect(...place);
          paint.globalAlpha = 1;
        }
      }
      if (!this.read_once) return;
      const [row, column] = this.at;
      paint.strokeStyle = this.colour("--ink");
      paint.lineWidth = 2;
      paint.strokeRect(
        left + column * side - x, top + row * side - y, size, size);
    });
  }

  drawHeadings(seen) {
    const { paint, box, left, top, side } = this;
    const { scrollLeft: x, scrollTop: y } = box;
    paint.textBaseline = "middle";
    const [r0, r1] = this.range(y, y + seen.height - top, this.rows.length);
    this.clipped(0, top, seen, () => {
      paint.textAlign = "right";
      for (let r = r0; r < r1; r++) {
        const middle = top + r * side - y + (side - GAP) / 2;
        this.write(this.rows[r], left - 8, middle, left - 8, r === this.at[0]);
      }
    });
    const [c0, c1] = this.range(x, x + seen.width - left, this.columns.length);
    this.clipped(left, 0, seen, () => {
      paint.textAlign = "left";
      for (let c = c0; c < c1; c++) {
        paint.save();
        paint.translate(left + c * side - x + (side - GAP) / 2, top - 6);
        paint.rotate(-Math.PI / 2); // from bottom to top
        this.write(this.columns[c], 0, 0, top - 6, c === this.at[1]);
        paint.restore();
      }
    });
  }

  // Writes a word and truncates it if it is too wide. The line above the matrix
  // shows the full words.
  write(word, x, y, room, read) {
    const { paint } = this;
    paint.fillStyle = this.colour(
      read && this.read_once ? "--accent" : "--ink");
    let shown = word;
    if (paint.measureText(word).width > room) {
      let kept = [...word].slice(0, Math.ceil(room)); // at least a pixel each
      const wide = () => paint.measureText(kept.join("") + "…").width > room;
      while (kept.length && wide()) kept.pop();
      shown = kept.join("") + "…";
    }
    paint.fillText(shown, x, y);
  }

  // Positions the invisible element of the current cell.
  place() {
    const { cell, left, top, side } = this;
    const [row, column] = this.at;
    cell.style.left = `${left + column * side}px`;
    cell.style.top = `${top + row * side}px`;
    cell.style.width = cell.style.height = `${side}px`;
    cell.style.scrollMargin = `${top}px 8px 8px ${left}px`;
  }

  read([row, column], scrolls = false) {
    this.at = [row, column];
    this.read_once = true;
    this.row.setAttribute("aria-rowindex", row + 1);
    this.cell.setAttribute("aria-colindex", column + 1);
    this.cell.textContent = this.weights[row][column].toFixed(3);
    this.point(row, column);
    this.place();
    if (scrolls) {
      this.cell.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    this.draw();
  }

  pointed(event) {
    const { left, top, side, box } = this;
    const { x, y } = box.getBoundingClientRect();
    const across = event.clientX - x, down = event.clientY - y;
    if (across < left || down < top) return;
    const column = Math.floor((across - left + box.scrollLeft) / side);
    const row = Math.floor((down - top + box.scrollTop) / side);
    if (row >= this.rows.length || column >= this.columns.length) return;
    if (this.read_once && row === this.at[0] && column === this.at[1]) return;
    this.read([row, column]);
  }

  walk(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const [row, column] = this.at;
    const there = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      PageUp: [row - 10, column],
      PageDown: [row + 10, column],
      Home: [row, 0],
      End: [row, this.columns.length - 1],
    }[event.key];
    if (!there) return;
    event.preventDefault();
    const clamp = (at, count) => Math.min(Math.max(at, 0), count - 1);
    this.read([
      clamp(there[0], this.rows.length),
      clamp(there[1], this.columns.length),
    ], true);
  }
}
