"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const redraws = [];
  let printing = false;

  const make = (tag, text, kind) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (kind) node.className = kind;
    return node;
  };

  // ---- light and dark
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const button = document.getElementById("theme");
  const told = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
    redraws.forEach((draw) => draw());
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    told();
  });
  dark.addEventListener("change", told);

  // ---- tables that can be sorted
  const sortBy = (table, header, place) => {
    const up = header.getAttribute("aria-sort") === "descending";
    all("th[aria-sort]", table).forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => {
      const cell = row.cells[place];
      if (cell.classList.contains("text")) return cell.textContent;
      return cell.dataset.value === undefined ? -Infinity : Number(cell.dataset.value);
    };
    const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
    const rows = [...table.tBodies[0].rows].sort((a, b) => (up ? 1 : -1) * compare(key(a), key(b)));
    table.tBodies[0].append(...rows);
  };
  for (const table of all("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((header, place) => {
      const press = make("button", header.textContent);
      press.type = "button";
      header.replaceChildren(press);
      press.addEventListener("click", () => sortBy(table, header, place));
    });
  }

  // ---- the gallery
  const AT_FIRST = 48;
  for (const gallery of all(".gallery")) {
    const cards = all(".cards > li", gallery);
    const filters = all("select[data-filter]", gallery);
    const more = gallery.querySelector("[data-more]");
    const found = gallery.querySelector(".found");
    let everything = false;
    const show = () => {
      const wanted = filters.filter((filter) => filter.value !== "");
      const fits = cards.filter((card) => wanted.every((filter) => card.dataset[filter.dataset.filter] === filter.value));
      const seen = new Set(everything ? fits : fits.slice(0, AT_FIRST));
      cards.forEach((card) => { card.hidden = !seen.has(card); });
      more.hidden = seen.size === fits.length;
      more.textContent = `Show all ${fits.length}`;
      found.textContent = seen.size < fits.length ? `${seen.size} of ${fits.length} shown` : `${fits.length} shown`;
    };
    filters.forEach((filter) => filter.addEventListener("change", () => { everything = false; show(); }));
    more.addEventListener("click", () => { everything = true; show(); });
    show();
  }

  // ---- maps
  const unpack = ({ type, data }) => {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const kinds = { Uint8Array, Uint16Array, Uint32Array };
    return new kinds[type](bytes.buffer);
  };
  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
  const BITS = { corrected: 1, noisy: 2, picked: 4 };
  const CLOSE = 14;

  const startMap = (box) => {
    const data = JSON.parse(document.getElementById(box.dataset.map).textContent);
    const arrays = Object.fromEntries(Object.entries(data.arrays).map(([name, array]) => [name, unpack(array)]));
    const n = data.size;
    const canvas = box.querySelector("canvas");
    const tip = box.querySelector(".tip");
    const spoken = box.querySelector("[aria-live]");
    const pictures = new Map(all(`.gallery li[data-index] img`).map((img) => [Number(img.closest("li").dataset.index), img.src]));
    const many = document.querySelectorAll("[data-map]").length > 1;
    const ink = canvas.getContext("2d");
    const on = new Set(all("[data-layer]:checked", box).map((input) => input.dataset.layer));
    const view = { x: 0.5, y: 0.5, zoom: 1 };
    const counts = {};
    for (const [name, bit] of Object.entries(BITS)) counts[name] = arrays.flags.reduce((sum, flags) => sum + (flags & bit ? 1 : 0), 0);
    let only = -1;
    let pointed = -1;
    let waiting = false;

    const size = () => ({ w: canvas.clientWidth, h: canvas.clientHeight });
    const scale = () => { const { w, h } = size(); return 0.92 * Math.min(w, h) * view.zoom; };
    const placeOf = (i) => {
      const { w, h } = size();
      const s = scale();
      return [w / 2 + (arrays.x[i] / 65535 - view.x) * s, h / 2 - (arrays.y[i] / 65535 - view.y) * s];
    };
    const seen = (i) => {
      if (only >= 0 && arrays.labels[i] !== only) return false;
      if (on.has("all")) return true;
      for (const layer of on) if (BITS[layer] & arrays.flags[i]) return true;
      return false;
    };

    const sprite = (radius, colour, ratio, ring) => {
      const side = Math.ceil(2 * radius + 4);
      const one = document.createElement("canvas");
      one.width = one.height = Math.ceil(side * ratio);
      const pen = one.getContext("2d");
      pen.scale(ratio, ratio);
      pen.beginPath();
      pen.arc(side / 2, side / 2, radius, 0, 2 * Math.PI);
      if (ring) { pen.lineWidth = ring; pen.strokeStyle = colour; pen.stroke(); } else { pen.fillStyle = colour; pen.fill(); }
      return { one, side };
    };

    const draw = () => {
      waiting = false;
      const { w, h } = size();
      if (!w) return;
      const ratio = printing ? 2 : Math.min(3, window.devicePixelRatio || 1);
      if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
        canvas.width = Math.round(w * ratio);
        canvas.height = Math.round(h * ratio);
      }
      ink.setTransform(ratio, 0, 0, ratio, 0, 0);
      ink.clearRect(0, 0, w, h);
      const style = getComputedStyle(box);
      const colour = (name) => style.getPropertyValue(name).trim();
      const r = clamp(Math.sqrt(w * h / n) * 0.17, 0.8, 3) * Math.pow(view.zoom, 0.4);
      const faint = (name) => clamp(Math.sqrt(5000 / (counts[name] || 1)), 0.3, 0.95);
      const layers = [
        ["picked", BITS.picked, sprite(r * 1.55, colour("--c0"), ratio)],
        ["corrected", BITS.corrected, sprite(r, colour("--c2"), ratio)],
        ["noisy", BITS.noisy, sprite(r * 1.55, colour("--c1"), ratio, Math.max(0.6, r * 0.42))],
      ].sort((one, other) => counts[other[0]] - counts[one[0]]);
      layers.unshift(["all", 0, sprite(r * 0.8, colour("--muted"), ratio)]);
      const s = scale();
      for (const [name, bit, { one, side }] of layers) {
        if (!on.has(name)) continue;
        ink.globalAlpha = bit ? faint(name) : 0.4;
        for (let i = 0; i < n; i++) {
          if (bit && !(arrays.flags[i] & bit)) continue;
          if (only >= 0 && arrays.labels[i] !== only) continue;
          const x = w / 2 + (arrays.x[i] / 65535 - view.x) * s;
          const y = h / 2 - (arrays.y[i] / 65535 - view.y) * s;
          if (x < -9 || y < -9 || x > w + 9 || y > h + 9) continue;
          ink.drawImage(one, x - side / 2, y - side / 2, side, side);
        }
      }
      ink.globalAlpha = 1;
      if (pointed >= 0) {
        const [x, y] = placeOf(pointed);
        ink.strokeStyle = colour("--ink");
        ink.lineWidth = 1.6;
        ink.beginPath();
        ink.arc(x, y, Math.max(6, r * 2.2), 0, 2 * Math.PI);
        ink.stroke();
      }
    };
    const soon = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };

    const nearest = (px, py, reach) => {
      let best = -1;
      let least = reach * reach;
      for (let i = 0; i < n; i++) {
        const [x, y] = placeOf(i);
        const far = (x - px) * (x - px) + (y - py) * (y - py);
        if (far < least && seen(i)) { least = far; best = i; }
      }
      return best;
    };

    const indexOf = (i) => (arrays.index ? arrays.index[i] : i);
    const linesOf = (i) => {
      const name = (labels) => data.classes[labels[i]];
      const lines = [["given", name(arrays.labels)]];
      if (arrays.corrected) {
        const sure = arrays.confidence ? ` (${Math.round(arrays.confidence[i] / 2.55)}%)` : "";
        lines.push(["model", `\u2068${name(arrays.corrected)}\u2069${sure}`]);
      }
      if (arrays.clean_labels) lines.push(["true", name(arrays.clean_labels)]);
      const flags = Object.keys(BITS).filter((key) => arrays.flags[i] & BITS[key]);
      const words = { corrected: "corrected", noisy: "wrong label", picked: "picked" };
      if (flags.length) lines.push(["", flags.map((key) => words[key]).reverse().join(", ")]);
      return lines;
    };
    const headOf = (i) => (data.ids ? data.ids[i] : `#${indexOf(i)}`);

    const point = (i) => {
      pointed = i;
      tip.hidden = i < 0;
      if (i >= 0) {
        const parts = [make("b", headOf(i))];
        const picture = many ? undefined : pictures.get(indexOf(i));
        if (picture) { const img = make("img"); img.src = picture; img.alt = ""; parts.unshift(img); }
        for (const [what, text] of linesOf(i)) {
          const line = make("span");
          if (what) line.append(make("span", `${what} `, "l"));
          line.firstChild?.style.setProperty("display", "inline");
          const value = make("bdi", text);
          line.append(value);
          parts.push(line);
        }
        tip.replaceChildren(...parts);
        const [x, y] = placeOf(i);
        const { w, h } = size();
        const left = x + 16 + tip.offsetWidth > w ? x - 16 - tip.offsetWidth : x + 16;
        tip.style.transform = `translate(${clamp(left, 4, Math.max(4, w - tip.offsetWidth - 4))}px,${clamp(y - tip.offsetHeight / 2, 4, Math.max(4, h - tip.offsetHeight - 4))}px)`;
      }
      soon();
    };

    const zoomBy = (factor, px, py) => {
      const { w, h } = size();
      const x = px ?? w / 2;
      const y = py ?? h / 2;
      const before = scale();
      view.zoom = clamp(view.zoom * factor, 1, 64);
      const after = scale();
      view.x += (x - w / 2) * (1 / before - 1 / after);
      view.y -= (y - h / 2) * (1 / before - 1 / after);
      keepInside();
      point(-1);
    };
    const keepInside = () => {
      const half = 0.5 - 0.5 / view.zoom;
      view.x = clamp(view.x, 0.5 - half - 0.25, 0.5 + half + 0.25);
      view.y = clamp(view.y, 0.5 - half - 0.25, 0.5 + half + 0.25);
    };
    const home = () => { Object.assign(view, { x: 0.5, y: 0.5, zoom: 1 }); point(-1); };

    let grip = null;
    canvas.addEventListener("pointerdown", (event) => {
      grip = { x: event.clientX, y: event.clientY, moved: false };
      if (event.pointerType === "mouse") canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const edge = canvas.getBoundingClientRect();
      if (grip && event.buttons) {
        view.x -= (event.clientX - grip.x) / scale();
        view.y += (event.clientY - grip.y) / scale();
        grip = { x: event.clientX, y: event.clientY, moved: true };
        keepInside();
        point(-1);
      } else {
        point(nearest(event.clientX - edge.left, event.clientY - edge.top, CLOSE));
      }
    });
    canvas.addEventListener("pointerup", (event) => {
      const edge = canvas.getBoundingClientRect();
      if (grip && !grip.moved) point(nearest(event.clientX - edge.left, event.clientY - edge.top, 2 * CLOSE));
      grip = null;
    });
    canvas.addEventListener("pointerleave", () => { grip = null; point(-1); });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const edge = canvas.getBoundingClientRect();
      zoomBy(Math.exp(-event.deltaY / 300), event.clientX - edge.left, event.clientY - edge.top);
    }, { passive: false });
    canvas.addEventListener("dblclick", (event) => {
      const edge = canvas.getBoundingClientRect();
      zoomBy(2, event.clientX - edge.left, event.clientY - edge.top);
    });
    canvas.addEventListener("keydown", (event) => {
      const step = 40 / scale();
      const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
      if (event.key in moves) {
        view.x += moves[event.key][0];
        view.y += moves[event.key][1];
        keepInside();
      } else if (event.key === "+" || event.key === "=") zoomBy(1.5);
      else if (event.key === "-") zoomBy(1 / 1.5);
      else if (event.key === "0") home();
      else if (event.key === "Escape") { point(-1); return; }
      else return;
      event.preventDefault();
      const { w, h } = size();
      point(nearest(w / 2, h / 2, Math.max(w, h)));
      spoken.textContent = pointed < 0 ? "" : `${headOf(pointed)}: ${linesOf(pointed).map((line) => line.join(" ")).join(", ")}`;
    });
    canvas.addEventListener("blur", () => point(-1));
    all("[data-zoom]", box).forEach((press) => press.addEventListener("click", () => {
      if (press.dataset.zoom === "all") home(); else zoomBy(press.dataset.zoom === "in" ? 1.6 : 1 / 1.6);
    }));
    all("[data-layer]", box).forEach((input) => input.addEventListener("change", () => {
      if (input.checked) on.add(input.dataset.layer); else on.delete(input.dataset.layer);
      point(-1);
    }));
    box.querySelector("[data-class]").addEventListener("change", (event) => {
      only = event.target.value === "" ? -1 : Number(event.target.value);
      point(-1);
    });

    box.querySelector("[data-csv]").addEventListener("click", () => {
      const quoted = (text) => {
        const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
        return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
      };
      const nameIn = (labels) => (i) => quoted(data.classes[labels[i]]);
      const columns = [["index", indexOf]];
      if (data.ids) columns.push(["id", (i) => quoted(data.ids[i])]);
      columns.push(["x", (i) => (arrays.x[i] / 65535).toFixed(5)], ["y", (i) => (arrays.y[i] / 65535).toFixed(5)]);
      columns.push(["given", nameIn(arrays.labels)]);
      if (arrays.corrected) columns.push(["corrected", nameIn(arrays.corrected)]);
      if (arrays.confidence) columns.push(["confidence", (i) => (arrays.confidence[i] / 255).toFixed(3)]);
      if (arrays.clean_labels) columns.push(["true", nameIn(arrays.clean_labels)]);
      for (const key of Object.keys(BITS)) {
        if (box.querySelector(`[data-layer=${key}]`)) columns.push([`is_${key}`, (i) => (arrays.flags[i] & BITS[key] ? 1 : 0)]);
      }
      const rows = [columns.map(([name]) => name).join(",")];
      for (let i = 0; i < n; i++) rows.push(columns.map(([, value]) => value(i)).join(","));
      const link = make("a");
      link.href = URL.createObjectURL(new Blob([`${rows.join("\r\n")}\r\n`], { type: "text/csv" }));
      link.download = `${box.dataset.name}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });

    new ResizeObserver(soon).observe(canvas);
    redraws.push(draw);
  };
  all("[data-map]").forEach(startMap);

  // ---- paper
  const print = (now) => { printing = now; redraws.forEach((draw) => draw()); };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  told();
})();
