"use strict";
// A link to a claim or a section opens the folds around it.
(() => {
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let element = target; element; element = element.parentElement) {
      if (element.matches("details")) element.open = true;
    }
    target?.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
})();
