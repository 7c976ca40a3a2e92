"use strict";
// Asks for the present state every two seconds while the page is visible, and says when nobody answers.
(() => {
  const PERIOD = 2000;
  const PATIENCE = 5000;
  const LONGEST_LOG = 2000;
  let answeredAt = Date.now();
  let tag = null;

  const offline = () => document.getElementById("offline");

  setInterval(() => {
    if (document.hidden) {
      answeredAt = Date.now();
      return;
    }
    const isAway = Date.now() - answeredAt > PATIENCE;
    offline().hidden = !isAway;
    document.body.classList.toggle("stale", isAway);
    document.body.dispatchEvent(new Event("tick"));
  }, PERIOD);

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) document.body.dispatchEvent(new Event("tick"));
  });

  document.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.elt.id === "live" && tag) event.detail.headers["If-None-Match"] = tag;
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    const { elt, xhr } = event.detail;
    if (elt.id !== "live" || !xhr.status) return;
    if (xhr.status === 403) location.reload();
    answeredAt = Date.now();
    tag = xhr.getResponseHeader("ETag");
  });

  // What a person fills in or opens stays as it is.
  Idiomorph.defaults.ignoreActiveValue = true;
  Idiomorph.defaults.callbacks = {
    ...Idiomorph.defaults.callbacks,
    beforeNodeMorphed: (from, to) => {
      if (from instanceof HTMLInputElement || from instanceof HTMLSelectElement) return false;
      if (from instanceof HTMLDetailsElement && to instanceof HTMLDetailsElement) to.open = from.open;
      return true;
    },
  };

  // Output follows its end unless somebody reads further up.
  const log = () => document.getElementById("log");
  const isAtEnd = (it) => it.scrollHeight - it.scrollTop - it.clientHeight < 40;
  let follows = true;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const output = log();
    if (output && output.contains(event.detail.target)) follows = isAtEnd(output);
  });
  document.addEventListener("htmx:afterSettle", () => {
    const output = log();
    if (!output) return;
    while (output.childNodes.length > LONGEST_LOG) output.firstChild.remove();
    if (follows) output.scrollTop = output.scrollHeight;
  });
  document.addEventListener("DOMContentLoaded", () => {
    const output = log();
    if (output) output.scrollTop = output.scrollHeight;
  });
})();
