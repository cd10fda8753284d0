"use strict";
(() => {
  const root = document.documentElement;

  // Light or dark: the reader's choice, else the system's. Some browsers keep nothing for pages opened from a file.
  const kept = {
    get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
    set: (theme) => { try { localStorage.setItem("theme", theme); } catch { /* forgotten on reload */ } },
  };
  const show = (theme) => { if (theme) root.dataset.theme = theme; };
  show(kept.get());
  const toggle = () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    show(dark ? "light" : "dark");
    kept.set(root.dataset.theme);
  };

  // Sorting. Rows without a value stay last; tiers are ruled off only while the rows stand in the order of the tiers.
  const sortable = (table) => {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const grouped = table.classList.contains("grouped");
    const headings = [...table.tHead.rows[0].cells];

    const compare = (column, sign) => (a, b) => {
      const [x, y] = [a.cells[column].dataset.sort, b.cells[column].dataset.sort];
      if (x === "" || y === "") return (x === "") - (y === "");
      const difference = Number(x) - Number(y);
      return sign * (Number.isNaN(difference) ? x.localeCompare(y) : difference);
    };
    headings.forEach((heading, column) => heading.addEventListener("click", () => {
      const flip = { ascending: "descending", descending: "ascending", none: heading.dataset.first };
      const order = flip[heading.getAttribute("aria-sort")];
      headings.forEach((other) => other.setAttribute("aria-sort", other === heading ? order : "none"));
      const sorted = [...rows].sort(compare(column, order === "ascending" ? 1 : -1));
      body.replaceChildren(...sorted);
      table.classList.toggle("grouped", grouped && sorted.every((row, i) => row === rows[i]));
    }));
  };

  // The filter keeps the rows that hold every word typed, wherever in their name, standing or recipe.
  const filterable = (input, table, count) => {
    const rows = [...table.tBodies[0].rows];
    const apply = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      rows.forEach((row) => { row.hidden = !words.every((word) => row.dataset.words.toLowerCase().includes(word)); });
      count.textContent = words.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length} methods` : "";
    };
    input.addEventListener("input", apply);
    apply();
  };

  // Legends: pointing at a method fades the others, pressing its button hides it; all legends act together.
  const legends = () => {
    const buttons = [...document.querySelectorAll(".legend button")];
    const sections = [...new Set(buttons.map((button) => button.closest("section")))];
    const drawn = sections.flatMap((section) => [...section.querySelectorAll(".series")]);
    const focus = (method) => drawn.forEach((part) => part.classList.toggle("faded", method !== null && part.dataset.method !== method));
    const set = (method, on) => {
      buttons.filter((b) => b.dataset.method === method).forEach((b) => b.setAttribute("aria-pressed", String(on)));
      drawn.filter((part) => part.dataset.method === method).forEach((part) => part.classList.toggle("hidden", !on));
    };
    for (const button of buttons) {
      const method = button.dataset.method;
      set(method, button.getAttribute("aria-pressed") === "true");
      const look = () => { if (button.getAttribute("aria-pressed") === "true") focus(method); };
      button.addEventListener("mouseenter", look);
      button.addEventListener("focus", look);
      button.addEventListener("mouseleave", () => focus(null));
      button.addEventListener("blur", () => focus(null));
      button.addEventListener("click", () => {
        set(method, button.getAttribute("aria-pressed") !== "true");
        focus(null);
      });
    }
  };

  // A link to a method opens it, and the keyboard goes on from there; on paper everything is open.
  const openTarget = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target || target.tagName !== "DETAILS") return;
    target.open = true;
    target.querySelector("summary").focus({ preventScroll: true });
    target.scrollIntoView();
  };
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((part) => { part.open = false; }));
  addEventListener("hashchange", openTarget);

  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", toggle);
    document.querySelectorAll("table.sortable").forEach(sortable);
    const filter = document.getElementById("filter");
    if (filter) filterable(filter, document.getElementById("ranked"), document.getElementById("count"));
    // pressing the same link twice changes no hash, but the method may have been closed in between
    document.querySelectorAll("#ranked a").forEach((link) => link.addEventListener("click", () => setTimeout(openTarget)));
    legends();
    openTarget();
  });
})();
