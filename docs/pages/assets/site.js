// What a keyboard and a screen reader need beyond the theme: a name of the search, and a way into what scrolls.
addEventListener("load", () => {
  document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");
  for (const part of document.querySelectorAll(".md-typeset pre > code, .md-typeset table")) part.tabIndex = 0;
});
