// Draws the topics around the self; a click on one brings its newest memories. The list below says the same in words.
"use strict";

const place = document.getElementById("graph");
const told = document.getElementById("told");

function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(
    ["paper", "card", "ink", "dim", "line", "accent", "tint", "warn"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
  );
}

function looks() {
  const c = colours();
  const font = getComputedStyle(document.body).fontFamily;
  return [
    { selector: "node", style: { label: "data(label)", color: c.ink, "font-family": font, "font-size": 13, "text-wrap": "wrap", "text-max-width": 130, "text-valign": "bottom", "text-margin-y": 5, "background-color": c.tint, "border-color": c.accent, "border-width": 1.5, width: "data(size)", height: "data(size)", "text-background-color": c.card, "text-background-opacity": 0.8, "text-background-padding": 2 } },
    { selector: ".centre", style: { "background-color": c.accent, color: c.paper, "text-valign": "center", "text-margin-y": 0, "font-weight": 600, "text-background-opacity": 0 } },
    { selector: ".memory", style: { "background-color": c.accent, "border-width": 0, label: "" } },
    { selector: ".memory.disputed", style: { "background-color": c.warn } },
    { selector: "node:selected", style: { "border-width": 4, "border-color": c.ink } },
    { selector: "edge", style: { width: 1.2, "line-color": c.line, "curve-style": "haystack" } },
    { selector: ".link", style: { width: "data(width)", "line-color": c.accent, "curve-style": "bezier" } },
    { selector: ".block", style: { width: "data(width)", "line-color": c.dim, "line-style": "dashed", "line-opacity": 0.55, "curve-style": "straight" } },
    { selector: ".tie", style: { "curve-style": "unbundled-bezier", "control-point-distances": 46, "control-point-weights": 0.5 } },
  ];
}

// The self in the middle; rings of topics around it, the largest ones first, no more on a ring than have room.
function places(nodes) {
  const found = new Map();
  const around = nodes.filter((node) => !node.centre).sort((a, b) => b.memories - a.memories || a.key.localeCompare(b.key));
  const wide = Math.min(Math.max((0.85 * place.clientWidth) / place.clientHeight, 0.65), 1.35);
  let ring = 0;
  for (let at = 0; at < around.length; ring += 1) {
    const count = Math.min(8 + 6 * ring, around.length - at);
    const radius = 190 + 150 * ring;
    for (let step = 0; step < count; step += 1, at += 1) {
      const angle = (2 * Math.PI * step) / count - Math.PI / 2 + ring * 0.3;
      found.set(around[at].key, { x: wide * radius * Math.cos(angle), y: radius * Math.sin(angle) });
    }
  }
  return found;
}

function elements(graph) {
  const where = places(graph.nodes);
  const nodes = graph.nodes.map((node) => ({
    data: { ...node, id: `t ${node.key}`, label: node.name, size: node.centre ? 92 : 22 + 9 * Math.log2(1 + node.memories) },
    classes: node.centre ? "topic centre" : "topic",
    position: where.get(node.key) ?? { x: 0, y: 0 },
  }));
  const ties = graph.ties.map((tie) => ({
    data: { source: `t ${tie.source}`, target: `t ${tie.target}`, width: 1.5 + Math.log2(1 + tie.blocks + tie.links) },
    classes: `${tie.links ? "link" : tie.blocks ? "block" : ""} ${tie.source === graph.nodes[0].key ? "" : "tie"}`,
  }));
  return [...nodes, ...ties];
}

async function fetched(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer.json();
}

// Places on rings, one beside the other: what was said together stands together.
function rings(count, inner) {
  const found = [];
  for (let radius = inner; found.length < count; radius += 24) {
    const room = Math.min(Math.floor((2 * Math.PI * radius) / 24), count - found.length);
    for (let step = 0; step < room; step += 1) {
      const angle = (2 * Math.PI * step) / room - Math.PI / 2;
      found.push({ x: radius * Math.cos(angle), y: radius * Math.sin(angle) });
    }
  }
  return found;
}

// Memories around their topic, the newest nearest.
async function expand(cy, topic) {
  cy.$(".memory").remove();
  const found = await fetched(`/graph/topic?topic=${encodeURIComponent(topic.data("key"))}`);
  const { x, y } = topic.position();
  const inner = topic.data("size") / 2 + 34;
  const dots = rings(found.memories.length, inner).map((step, at) => {
    const memory = found.memories[at];
    return { data: { ...memory, id: `m ${memory.id}`, memory: memory.id, size: 13 }, classes: `memory ${memory.status}`, position: { x: x + step.x, y: y + step.y } };
  });
  const edge = (kind) => (tie) => ({ data: { source: `m ${tie.source}`, target: `m ${tie.target}`, width: kind === "link" ? 2 : 1 }, classes: kind });
  const added = cy.add([...dots, ...found.blocks.map(edge("block")), ...found.links.map(edge("link"))]);
  place.dataset.opened = topic.data("key");
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  cy.animate({ fit: { eles: added.union(cy.$(".topic")), padding: 34 } }, { duration: calm ? 0 : 250 });
}

function tell(text, address) {
  const link = document.createElement("a");
  link.href = address;
  link.dir = "auto";
  link.textContent = text;
  told.replaceChildren(link);
}

async function draw() {
  const graph = await fetched("/graph");
  const cy = cytoscape({ container: place, elements: elements(graph), style: looks(), layout: { name: "preset", padding: 34 }, minZoom: 0.2, maxZoom: 2.5, boxSelectionEnabled: false });
  if (cy.zoom() > 1.1) {
    cy.zoom(1.1);
    cy.center();
  }
  told.replaceChildren();
  cy.on("tap", ".topic", (event) => {
    const { key, memories } = event.target.data();
    tell(`${key} · ${place.dataset.memories.replace("{count}", memories)}`, `/memories?topic=${encodeURIComponent(key)}`);
    expand(cy, event.target).catch(failed);
  });
  cy.on("tap", ".memory", (event) => tell(event.target.data("text"), `/memory?id=${encodeURIComponent(event.target.data("memory"))}`));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => cy.style(looks()));
  place.dataset.drawn = String(cy.nodes().length);
  place.cy = cy;
}

function failed() {
  told.textContent = place.dataset.failed;
}

if (place) draw().catch(failed);
