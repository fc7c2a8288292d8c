"use strict";
// A link to a claim or a section opens the folds around it; one of the contents folds them.
(() => {
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let element = target; element; element = element.parentElement) {
      if (element.matches("details")) element.open = true;
    }
    target?.scrollIntoView();
  };
  addEventListener("hashchange", open);
  const contents = document.querySelector("nav details");
  contents?.addEventListener("click", (event) => {
    if (event.target.closest("a")) contents.open = false;
  });
  open();
})();
