"use strict";
// An alignment says the weight of the cell that is pointed at or chosen.
for (const area of document.querySelectorAll(".alignment")) {
  const caption = area.nextElementSibling;
  const rows = [...area.querySelectorAll("tbody tr")];
  const sources = [...area.querySelectorAll("thead th")];
  let row = 0, column = -1;
  const choose = (newRow, newColumn) => {
    area.querySelectorAll(".at").forEach((old) => old.classList.remove("at"));
    row = Math.min(Math.max(newRow, 0), rows.length - 1);
    column = Math.min(Math.max(newColumn, 0), sources.length - 1);
    const word = rows[row].cells[0], cell = rows[row].cells[column + 1];
    [word, cell, sources[column]].forEach((part) => part.classList.add("at"));
    caption.replaceChildren(
      part(word), " attends to ", part(sources[column]),
      ` with weight ${cell.textContent} %`,
    );
    return cell;
  };
  const part = (heading) => {
    const text = document.createElement("bdi");
    text.lang = heading.lang;
    text.textContent = `“${heading.textContent}”`;
    return text;
  };
  area.addEventListener("pointerover", (event) => {
    const cell = event.target.closest("tbody td");
    if (cell) choose(rows.indexOf(cell.parentElement), cell.cellIndex - 1);
  });
  area.addEventListener("keydown", (event) => {
    const move = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    }[event.key];
    if (!move || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const first = column < 0;
    choose(first ? 0 : row + move[0], first ? 0 : column + move[1])
      .scrollIntoView({ block: "nearest", inline: "nearest" });
  });
}
