// Checks the layout and contrast of the pages that the test passes as `pages`: [name, HTML, opened]. Each is laid out
// for desk, phone and paper, light and dark; faults are written as text to the element `found`.
const forms = [
  { name: "desk, light", width: 1440, height: 900 },
  { name: "desk, dark", width: 1440, height: 900, dark: true },
  { name: "phone, light", width: 390, height: 844 },
  { name: "phone, dark", width: 390, height: 844, dark: true },
  { name: "paper", width: 718, height: 1000, paper: true },
];
const found = [];

// Selects media by rewriting the media rules, so that one browser can show every form.
function choose(doc, form) {
  for (const sheet of doc.styleSheets) {
    for (const rule of sheet.cssRules) {
      if (!(rule instanceof doc.defaultView.CSSMediaRule)) continue;
      const media = rule.media.mediaText;
      if (media.includes("prefers-color-scheme: dark")) rule.media.mediaText = form.dark ? "all" : "not all";
      else if (media === "print") rule.media.mediaText = form.paper ? "all" : "not all";
    }
  }
}

const isScroller = (style) => /auto|scroll/.test(style.overflowX + style.overflowY);

function hidden(element) {
  for (let at = element; at; at = at.parentElement) {
    const fold = at.parentElement;
    if (fold && fold.tagName === "DETAILS" && !fold.open && at.tagName !== "SUMMARY") return true;
  }
  return !element.checkVisibility();
}

// The area that a text occupies, without the parts hidden by scrolling boxes.
function visible(view, element, rect) {
  let { left, top, right, bottom } = rect;
  for (let at = element.parentElement; at; at = at.parentElement) {
    if (!isScroller(view.getComputedStyle(at))) continue;
    const box = at.getBoundingClientRect();
    [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
    [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
  }
  return right - left > 1 && bottom - top > 1 ? { left, top, right, bottom } : null;
}

const colour = (text) => {
  const parts = text.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
  return parts.length === 3 ? [...parts, 1] : parts;
};
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));

function paper(view, element) {
  const layers = [];
  for (let at = element; at; at = at.parentElement) {
    const layer = colour(view.getComputedStyle(at).backgroundColor);
    if (layer[3] > 0) layers.push(layer);
    if (layer[3] === 1) break;
  }
  return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
}

function luminance(rgb) {
  const linear = rgb.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

function contrast(view, element) {
  const style = view.getComputedStyle(element);
  const below = paper(view, element);
  const ink = over(colour(element.namespaceURI.endsWith("svg") ? style.fill : style.color), below);
  const [high, low] = [luminance(ink), luminance(below)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

function texts(doc, view, say) {
  const all = [];
  const walker = doc.createTreeWalker(doc.body, 4);
  const seen = new Map();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const words = node.data.trim();
    if (!words || /^(style|script|title)$/i.test(element.tagName) || hidden(element)) continue;
    const style = view.getComputedStyle(element);
    const key = `${element.className.baseVal ?? element.className}|${element.tagName}|${style.color}|${style.fill}|${paper(view, element)}`;
    if (!seen.has(key)) {
      seen.set(key, true);
      const ratio = contrast(view, element);
      if (ratio < 4.5) say(`contrast ${ratio.toFixed(2)}`, words);
    }
    const svg = element.closest("svg");
    const range = doc.createRange();
    range.selectNodeContents(node);
    const rects = svg ? [element.getBoundingClientRect()] : [...range.getClientRects()];
    for (const rect of rects) {
      if (svg && view.getComputedStyle(svg).overflow === "hidden") {
        const box = svg.getBoundingClientRect();
        const inside = rect.left >= box.left - 1 && rect.right <= box.right + 1 && rect.top >= box.top - 2 && rect.bottom <= box.bottom + 2;
        if (!inside) say("cut", words);
      }
      const shown = visible(view, element, rect);
      if (!shown) continue;
      if (shown.left < -1 || shown.right > view.innerWidth + 1) say("beside the page", words);
      // Letters fill less than the line that is reserved for them.
      const slack = (shown.bottom - shown.top) * 0.18;
      all.push({ ...shown, top: shown.top + slack, bottom: shown.bottom - slack, words });
    }
  }
  return all;
}

function check(name, doc, view, form, isOpened) {
  const counts = new Map();
  const say = (what, words) => {
    const count = (counts.get(what) ?? 0) + 1;
    counts.set(what, count);
    if (count <= 3) found.push(`${name}, ${form.name}${isOpened ? ", opened" : ""}: ${what}: ${words.slice(0, 90)}`);
  };
  const root = doc.documentElement;
  if (root.scrollWidth > view.innerWidth) say("wider than its window", `${root.scrollWidth} of ${view.innerWidth}`);
  for (const element of doc.body.querySelectorAll("*")) {
    const style = view.getComputedStyle(element);
    const isCut = /hidden|clip/.test(style.overflowX) && !element.closest("svg");
    if ((isCut || (form.paper && isScroller(style))) && element.scrollWidth > element.clientWidth + 1) {
      say("cut", element.textContent.trim());
    }
  }
  const all = texts(doc, view, say).sort((a, b) => a.top - b.top);
  for (let i = 0; i < all.length; i++) {
    for (let j = i + 1; j < all.length && all[j].top < all[i].bottom - 1; j++) {
      const wide = Math.min(all[i].right, all[j].right) - Math.max(all[i].left, all[j].left);
      const high = Math.min(all[i].bottom, all[j].bottom) - all[j].top;
      if (wide > 1 && high > 1) say("overlap", `${all[i].words.slice(0, 40)} / ${all[j].words.slice(0, 40)}`);
    }
  }
  const fold = doc.querySelector("details");
  if (fold && !isOpened && form.width === 1440) {
    const top = fold.getBoundingClientRect().top + view.scrollY;
    if (top >= 3000) say("the first fold begins too far down", `${Math.round(top)} px`);
  }
  if (all.length === 0) say("empty", "");
}

for (const [name, html, opened] of pages) {
  for (const form of forms) {
    const frame = document.createElement("iframe");
    Object.assign(frame.style, { width: `${form.width}px`, height: `${form.height}px`, border: "0" });
    document.body.append(frame);
    const doc = frame.contentDocument;
    doc.open();
    doc.write(html);
    doc.close();
    choose(doc, form);
    check(name, doc, frame.contentWindow, form, false);
    if (opened && !form.dark) {
      doc.querySelectorAll("details").forEach((fold) => (fold.open = true));
      check(name, doc, frame.contentWindow, form, true);
    }
    frame.remove();
  }
}
document.getElementById("found").textContent = JSON.stringify(found);
