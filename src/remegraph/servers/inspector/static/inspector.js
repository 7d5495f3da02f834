// The keyboard: "/" goes to the search, Escape leaves it. Everything else works without a script.
"use strict";

document.addEventListener("keydown", (event) => {
  const search = document.getElementById("search");
  const typing = /^(input|select|textarea)$/i.test(document.activeElement?.tagName ?? "");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.focus();
  } else if (event.key === "Escape" && document.activeElement === search) {
    search.blur();
  }
});

document.querySelector(".side [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
document.getElementById("marked")?.scrollIntoView({ block: "center" });
