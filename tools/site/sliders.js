// Figures with sliders, where a formula decides: figure.sliders, whose data is the JSON in it (sliders.py, which has the
// same formulas). Every slider is an input of type range with its label and its value; what follows is a table.
"use strict";

(() => {
  const FORMULAS = {
    "tile-1d": ([block, radius]) => {
      const plain = 4 * (2 * radius + 1), tiled = (4 * (block + 2 * radius)) / block;
      return [plain, tiled, plain / tiled, (100 * 2 * radius) / (block + 2 * radius), 4 * (block + 2 * radius)];
    },
    "tile-2d": ([tile, taps]) => {
      const side = tile + taps - 1, plain = taps * taps, tiled = (side * side) / (tile * tile);
      return [plain, tiled, plain / tiled, 100 * (1 - 1 / tiled), (4 * side * side) / 1024];
    },
    intensity: ([tiles, channels, filters], ceilings) => {
      const flop = 2 * tiles * channels * filters;
      const moved = 4 * (tiles * channels + channels * filters + tiles * filters);
      return [flop / moved, (channels * filters) / (2 * (channels + filters)), ceilings.fp32 / ceilings.dram,
        (1e6 * moved) / ceilings.dram, (1e6 * flop) / ceilings.fp32];
    },
    "winograd-error": (settings, errors, [form, channels]) => {
      const side = errors.sides[form], products = (side + 2) ** 2 / side ** 2;
      return [errors.fp32[form][channels], errors.fp16[form][channels], 9, products, 9 / products];
    },
  };

  function element(name, properties = {}, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  function shown(value, row) {
    const number = row.digits === "e" ? value.toExponential(1).replace(/e([+-])(\d)$/, "e$10$2") :
      value.toLocaleString("en", {minimumFractionDigits: row.digits, maximumFractionDigits: row.digits});
    return number + (["", "×", "%"].includes(row.unit) ? "" : " ") + row.unit;
  }

  let figures = 0;

  function start(figure) {
    const {name, inputs, rows, data} = JSON.parse(figure.querySelector("script").textContent);
    const id = `slider${figures++}`;
    const controls = element("div", {className: "controls"});
    const lines = rows.map((row) => {
      const value = element("td", {className: "value"}), bar = element("span", {className: "bar"});
      bar.setAttribute("aria-hidden", "true");
      return {row, value, bar, line: element("tr", {}, element("th", {scope: "row"}, row.label), value,
        element("td", {className: "room"}, ...(row.bar ? [bar] : [])))};
    });
    const results = element("table", {}, element("tbody", {}, ...lines.map(({line}) => line)));
    results.setAttribute("aria-live", "polite");

    const ranges = inputs.map((input, i) => {
      const range = element("input", {type: "range", id: `${id}-${i}`, min: 0, max: input.values.length - 1});
      range.value = input.start;
      const output = element("output", {htmlFor: range.id});
      controls.append(element("div", {}, element("label", {htmlFor: range.id}, input.label), range, output));
      range.addEventListener("input", show);
      return {range, output, input};
    });

    function show() {
      const places = ranges.map(({range}) => Number(range.value));
      const settings = places.map((place, i) => inputs[i].values[place]);
      ranges.forEach(({range, output}, i) => {
        output.textContent = settings[i].toLocaleString("en");
        range.setAttribute("aria-valuetext", output.textContent);
      });
      const values = FORMULAS[name](settings, data, places);
      const most = Math.max(...values.filter((_, i) => rows[i].bar));
      lines.forEach(({row, value, bar}, i) => {
        value.textContent = shown(values[i], row);
        value.dataset.value = values[i];
        bar.style.width = `${(100 * values[i]) / most}%`;
      });
    }

    figure.append(controls, results);
    show();
  }

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("figure.sliders").forEach(start));
})();
