"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const PAGE = 50, PRINTED = 2000;
  const STATUS = data.statuses.map((status) => status[0]), WORDS = data.statuses.map((status) => status[1]);
  const by = (id) => document.getElementById(id);
  const list = by("people"), count = by("count"), more = by("more"), search = by("search");
  const people = data.people.map(function (row, place) {
    return { place, label: row[0], status: row[1], now: row[2], wanted: row[3], values: row[4], plans: row[5], notDurable: row[6], why: row[7], wish: row[8] };
  });
  let matching = people, shown = 0;

  // Everything from the data becomes text, never HTML.
  function make(tag, settings, ...inside) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(settings || {})) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  }
  const number = (value) => String(+value.toPrecision(3));
  const name = (feature) => data.features[feature][0];
  const now = (person, feature) => data.words[person.values[feature]];
  const cost = (person) => person.plans.length ? person.plans[0][0] : Infinity;
  const hold = (person) => person.plans.length && person.plans[0][1] !== null ? person.plans[0][1] : Infinity;

  function change(person, moved) {
    const [feature, then, follows] = moved;
    return name(feature) + ": " + now(person, feature) + " → " + data.words[then] + (follows ? " (follows)" : "");
  }
  function sentence(person, plan) {
    const told = plan[3].filter((moved) => !moved[2]);
    return told.map((moved) => name(moved[0]) + " " + now(person, moved[0]) + " → " + data.words[moved[1]]).join(" and ");
  }
  function held(plan) {
    const fewer = plan[1] !== null && data.hold !== null && plan[1] < data.hold * data.members - 1e-9;
    return data.words[plan[2]] + (fewer ? " That is a smaller share than was asked of the models that chose it." : "");
  }
  function planBox(person, plan, place, notDurable) {
    const box = make("div", { class: notDurable ? "plan-box not-durable" : "plan-box" });
    const title = notDurable ? "Not durable" : person.plans.length > 1 ? "Plan " + (place + 1) : "Plan";
    box.append(make("h3", {}, title, make("span", {}, "cost " + number(plan[0]))));
    if (plan[3].length > 1) box.append(make("p", { class: "soft" }, "All of these together:"));
    box.append(make("ul", {}, ...plan[3].map(function (moved) {
      const part = plan[3].length > 1 && moved[3] !== null ? [" ", make("span", { class: "soft part" }, "(cost " + number(moved[3]) + ")")] : [];
      return make("li", {}, change(person, moved), ...part);
    })));
    if (plan[1] !== null) {
      const bar = make("i");
      bar.style.width = (100 * plan[1] / data.members) + "%";
      box.append(make("div", { class: "meter", "aria-hidden": "true" }, bar));
    }
    box.append(make("p", { class: "held" }, held(plan)));
    return box;
  }
  function valueTable(person) {
    const plans = person.plans.length ? person.plans : person.notDurable;
    const title = (place) => person.plans.length ? "plan " + (place + 1) : "not durable";
    const head = make("tr", {}, ...["feature", "now", ...plans.map((_, place) => title(place)), "plans"].map((word) => make("th", { scope: "col" }, word)));
    const rows = data.features.map(function ([called, rule], feature) {
      const cells = plans.map(function (plan) {
        const moved = plan[3].find((one) => one[0] === feature);
        return moved ? make("td", { class: "moved" }, data.words[moved[1]]) : make("td", {}, "=");
      });
      return make("tr", {}, make("th", { scope: "row" }, called), make("td", {}, now(person, feature)), ...cells, make("td", { class: "soft" }, rule));
    });
    const table = make("table", {}, make("caption", { class: "unseen" }, "All values of " + person.label), make("thead", {}, head), make("tbody", {}, ...rows));
    return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All values of " + person.label }, table);
  }
  function note() {
    const asked = data.kinds.length ? " The audit models had no say in choosing the plans; they are of kind " + data.kinds.map((kind) => "“" + kind + "”").join(" and ") +
      ". Other kinds of retraining were not tested. What they say is a measurement, not a promise." : "";
    return "A plan is good while everything that it does not name stays the same. No end date is known: ask again when the model, the data or the rules change." + asked;
  }
  function kept(person) {
    const told = data.features.map(([called, rule], feature) => rule === "never changes" ? called + " (" + now(person, feature) + ")" : null).filter(Boolean);
    return told.length ? "No plan was allowed to change: " + told.join(", ") + "." : "Every feature was allowed to change.";
  }
  function body(person) {
    const inside = make("div", { class: "body" });
    const has = data.words[person.now], wants = data.words[person.wanted];
    const already = STATUS[person.status] === "has-the-class";
    inside.append(make("p", {}, already ? "The deployed model says “" + has + "” already." : "Refused: the deployed model says “" + has + "”; wanted is “" + wants + "”."));
    if (person.plans.length) inside.append(make("div", { class: "plans" }, ...person.plans.map((plan, place) => planBox(person, plan, place, false))));
    if (person.plans.length) inside.append(make("p", { class: "soft" }, note()));
    if (person.why >= 0 && !already) inside.append(make("p", {}, make("strong", {}, "No plan: "), data.words[person.why] + "."));
    if (person.notDurable.length) {
      inside.append(make("p", {}, "The best that was found. It does not hold as was asked. Do not pass this on to the applicant."));
      inside.append(make("div", { class: "plans" }, ...person.notDurable.map((plan, place) => planBox(person, plan, place, true))));
    }
    if (!already) inside.append(make("p", {}, kept(person)));
    if (!already && person.wish >= 0) inside.append(make("p", {}, "Limits for this person: " + data.words[person.wish] + "."));
    const all = make("details", {}, make("summary", {}, "All values"));
    all.addEventListener("toggle", function () { if (all.open && all.children.length === 1) all.append(valueTable(person)); });
    inside.append(all);
    return inside;
  }
  function summaryLine(person) {
    const best = person.plans[0];
    const first = best ? sentence(person, best) : STATUS[person.status] === "nothing-found" ? data.words[person.why] : "";
    const figure = best ? "cost " + number(best[0]) + (best[1] === null ? "" : " · " + best[1] + " of " + data.members + " accept") : "";
    return make("summary", {}, make("span", { class: "label" }, person.label), make("span", { class: "badge " + STATUS[person.status] }, WORDS[person.status]),
      make("span", { class: "first" }, first), make("span", { class: "figure" }, figure));
  }
  function card(person) {
    const details = make("details", { id: "person-" + person.place }, summaryLine(person));
    details.addEventListener("toggle", function () { if (details.open) fill(details, person); });
    return make("li", { class: "card", "data-person": person.label }, details);
  }
  function fill(details, person) {
    if (details.children.length === 1) details.append(body(person));
  }

  // ---- which people, in which order ----

  function text(person) {
    if (person.text === undefined) {
      const told = [...person.plans, ...person.notDurable].flatMap((plan) => plan[3].map((moved) => change(person, moved)));
      const own = person.values.map((_, feature) => now(person, feature));
      person.text = [person.label, WORDS[person.status], ...told, ...own, person.why < 0 ? "" : data.words[person.why]].join("\n").toLowerCase();
    }
    return person.text;
  }
  const ORDERS = {
    given: () => 0,
    id: (one, other) => one.label.localeCompare(other.label, "en", { numeric: true }),
    cost: (one, other) => cost(one) - cost(other) || 0,
    hold: (one, other) => hold(one) - hold(other) || 0,
    plans: (one, other) => other.plans.length - one.plans.length,
  };
  function ask() {
    const words = search.value.trim().toLowerCase(), wanted = by("status").value;
    const groups = [...document.querySelectorAll("select.group")].filter((one) => one.value !== "");
    const exact = people.filter((person) => person.label.toLowerCase() === words);
    // Whoever types a label wants that person, whatever is filtered.
    matching = exact.length ? exact : people.filter((person) =>
      (wanted === "all" || (wanted === "refused" ? STATUS[person.status] !== "has-the-class" : STATUS[person.status] === wanted)) &&
      groups.every((one) => data.groups[one.dataset.group][person.place] === Number(one.value)) &&
      (words === "" || text(person).includes(words)));
    matching = [...matching].sort(ORDERS[by("sort").value]);  // stable: people who are even keep the order of the table
    shown = 0;
    list.replaceChildren();
    show(PAGE);
  }
  function show(number) {
    const next = matching.slice(shown, shown + number);
    list.append(...next.map(card));
    shown += next.length;
    const left = matching.length - shown;
    count.textContent = matching.length.toLocaleString("en") + " of " + people.length.toLocaleString("en") + " people" +
      (left > 0 ? ", the first " + shown.toLocaleString("en") + " shown" : matching.length ? "" : ": nothing matches; change the search or the filters");
    more.hidden = left <= 0;
    more.textContent = "Show " + Math.min(PAGE, left) + " more";
  }
  function openNamed() {
    const found = /^#person-(\d+)$/.exec(location.hash);
    if (!found || !people[found[1]]) return;
    const place = Number(found[1]);
    if (!matching.some((person) => person.place === place)) {
      search.value = ""; by("status").value = "all";
      document.querySelectorAll("select.group").forEach((one) => { one.value = ""; });
      ask();
    }
    const rank = matching.findIndex((person) => person.place === place);
    if (rank >= shown) show(rank + 1 - shown);
    const details = by(found[0].slice(1));
    details.open = true;
    fill(details, people[place]);
    details.scrollIntoView({ block: "center" });
    details.firstElementChild.focus({ preventScroll: true });
  }

  search.addEventListener("input", ask);
  document.querySelectorAll(".controls select").forEach((one) => one.addEventListener("change", ask));
  more.addEventListener("click", function () {
    const next = shown;
    show(PAGE);
    if (list.children[next]) list.children[next].querySelector("summary").focus();
  });
  document.addEventListener("keydown", function (pressed) {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (pressed.key === "/" && !typing && !pressed.ctrlKey && !pressed.metaKey && !pressed.altKey) { pressed.preventDefault(); search.focus(); }
  });
  window.addEventListener("hashchange", openNamed);

  // Paper shows every person who matches, with their plans.
  let opened = [];
  function openForPaper() {
    if (shown < Math.min(matching.length, PRINTED)) show(Math.min(matching.length, PRINTED) - shown);
    [...list.children].forEach(function (item) {
      const details = item.firstElementChild;
      fill(details, people[Number(details.id.slice(7))]);
      if (!details.open) { details.open = true; opened.push(details); }
    });
  }
  function closeAgain() { opened.forEach((details) => { details.open = false; }); opened = []; }
  window.addEventListener("beforeprint", openForPaper);
  window.addEventListener("afterprint", closeAgain);
  window.matchMedia("print").addEventListener("change", (media) => media.matches ? openForPaper() : closeAgain());

  ask();
  openNamed();
  requestAnimationFrame(() => requestAnimationFrame(() => performance.mark("first-card")));
})();
