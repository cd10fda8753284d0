"use strict";
// Light or dark: the reader's choice while the page is open, else the system's.
addEventListener("DOMContentLoaded", () => {
  const root = document.documentElement;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
});
