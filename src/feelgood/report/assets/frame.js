  // The frame --------------------------------------------------------------------------------
  function showProblem(index) {
    state.problem = index;
    [...byId("problems").children].forEach((button, i) => press(button, i === index));
    byId("problem-name").textContent = problem().name;
    findAgents();
    showAgents();
    showSections();
    showTables();
    filterTables();
  }
  function link(id, title) {
    byId("sections").append(make("li", { id: `to-${id}` },
      make("a", { href: `#${id}`, onclick: closeBoxes }, title)));
  }
  function card(id, title, about) {
    link(id, title);
    const section = make("section", { class: "card", id, "aria-labelledby": `${id}-title` },
      make("h2", { id: `${id}-title` }, title, " ", make("span", { id: `${id}-where`, class: "where" })),
      about ? make("p", { class: "about" }, about) : null, make("div", { class: "body" }));
    byId("content").append(section);
    return section;
  }
  function overview() {
    const section = card("overview", "Overview", data.overview.about);
    const facts = make("dl", { class: "facts" });
    for (const [name, value] of data.overview.facts)
      facts.append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
    section.append(facts);
    if (data.overview.warnings.length)
      section.append(make("div", { class: "notice", role: "note" },
        make("ul", {}, ...data.overview.warnings.map((text) => make("li", {}, text)))));
    section.append(make("ul", { class: "verdicts" }, ...data.overview.verdicts.map(
      ([name, text]) => make("li", {}, make("strong", {}, name), make("span", {}, text)))));
  }
  function filterVerdicts() {
    const words = wordsOf();
    const names = data.overview.verdicts.map(([name, text]) => `${name} ${text}`);
    const kept = new Set(matching(names, words));
    [...document.querySelectorAll(".verdicts li")].forEach((line, i) => { line.hidden = !kept.has(names[i]); });
  }
  // On a phone the lists are closed and stay within reach at the top; one is open at a time.
  const boxes = [...document.querySelectorAll("aside details")];
  function closeBoxes() {
    if (narrow.matches) boxes.forEach((box) => { box.open = false; });
  }
  function placeBoxes() {
    boxes.forEach((box) => { box.open = !narrow.matches; });
  }
  boxes.forEach((box) => box.addEventListener("toggle", () => {
    if (narrow.matches && box.open) boxes.forEach((other) => { if (other !== box) other.open = false; });
  }));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") closeBoxes(); });
  document.addEventListener("pointerdown", (event) => {
    if (!event.target.closest("aside")) closeBoxes();
  });
  narrow.addEventListener("change", placeBoxes);
  byId("lede").textContent = data.lede;
  byId("end").textContent = data.end;
  overview();
  data.sections.forEach((section) => card(section.id, section.title, section.about));
  card("numbers", "All numbers", data.numbers_about);
  byId("problems").append(...data.problems.map((p, i) =>
    make("button", { type: "button", onclick: () => { closeBoxes(); showProblem(i); } }, p.name)));
  placeBoxes();
  byId("theme").addEventListener("click", () => setTheme(theme === "dark" ? "light" : "dark", true));
  systemDark.addEventListener("change", () => {
    if (!remembered()) setTheme(systemDark.matches ? "dark" : "light", false);
  });
  const kept = remembered();
  setTheme(kept === "dark" || kept === "light" ? kept : systemDark.matches ? "dark" : "light", false);
  showProblem(0);
})();
