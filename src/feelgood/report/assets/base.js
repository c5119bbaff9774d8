"use strict";
// Draws the report from the JSON in #data. Names from files reach the page as text nodes only.
// The parts follow each other in one function: base, axes, charts, agents, tables, frame.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const narrow = window.matchMedia("screen and (max-width: 860px)");
  const systemDark = window.matchMedia("(prefers-color-scheme: dark)");

  // Elements ---------------------------------------------------------------------------------
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "onclick") element.addEventListener("click", value);
      else if (value !== null && value !== false) element.setAttribute(name, value);
    }
    for (const child of children) if (child !== null) element.append(child);
    return element;
  }
  const press = (button, on) => button.setAttribute("aria-pressed", String(on));

  // Numbers ----------------------------------------------------------------------------------
  const decimals = (digits) =>
    new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const formats = [decimals(0), decimals(1), decimals(2), decimals(3)];
  function number(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 0.001 || size >= 1e7)) return value.toPrecision(3);
    return formats[size >= 1000 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3].format(value);
  }

  // State ------------------------------------------------------------------------------------
  const state = {
    problem: 0,
    shown: data.problems.map((p) => new Set(p.initially)),
    found: null, // while something is searched for: the agents that were found, and are drawn
    picks: new Map(), // section → what its buttons say
    hovered: "", // the agent under the pointer
    kept: "", // the agent that was clicked
  };
  const problem = () => data.problems[state.problem];
  const shownSet = () => state.found || state.shown[state.problem];
  const shownLabels = () => problem().labels.filter((label) => shownSet().has(label));
  const focus = () => {
    const label = state.hovered || state.kept;
    return shownSet().has(label) ? label : "";
  };
  const drawn = []; // what is on the page now: { entry, element, made, visible }
  // Agents whose runs are the same number for number: label → "a = b".
  const sameAs = data.problems.map((p) =>
    new Map((p.same || []).flatMap((labels) => labels.map((label) => [label, labels]))));

