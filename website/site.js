// Tables that are wider than a small screen scroll in a box that Material puts around them: keys reach it, too.
addEventListener("load", () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) box.tabIndex = 0;
});
