// The boxes in which the element of `node` is drawn, in CSS pixels of the viewport, best first; and points in them. Needs hits.js. An
// element without a box has those of its content, an area of an image map those of its image, and a hidden field is driven by its label.
const drawn = list => [...list].filter(each => each.width > 0 && each.height > 0 || (each.width > 0 || each.height > 0) && element.ownerSVGElement);
const contents = at => {
  const range = document.createRange();
  range.selectNodeContents(at);
  return drawn(range.getClientRects());
};
const mapped = () => {  // an area: around its coordinates, then all of its image
  const map = element.closest('map'), names = [`#${map?.name}`, `#${map?.id}`];
  const image = [...element.getRootNode().querySelectorAll('[usemap]')].find(each => names.includes(each.useMap) && each.getClientRects().length);
  if (!image) return [];
  const box = image.getBoundingClientRect(), scale = box.width / image.offsetWidth || 1, far = element.coords.split(/[\s,]+/).filter(Boolean).map(Number);
  const ring = /^circ/i.test(element.shape) ? [far[0] - far[2], far[1] - far[2], far[0] + far[2], far[1] + far[2]] : far;
  const [xs, ys] = [0, 1].map(axis => ring.filter((_, i) => i % 2 === axis));
  const [x, y, right, bottom] = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
  const around = new DOMRect(box.left + x * scale, box.top + y * scale, (right - x) * scale, (bottom - y) * scale);
  return [...(around.width > 0 && Number.isFinite(around.width) ? [around] : []), box];
};
const boxes = () => {
  if (element.localName === 'area') return mapped();
  if (node.nodeType !== 1) return contents(node);
  const own = drawn(element.getClientRects());
  const inner = own.length ? [] : contents(element.shadowRoot ?? element);
  const deep = own.length || inner.length ? [] : [...element.querySelectorAll('*')].slice(0, 100).flatMap(each => drawn(each.getClientRects()));
  const labels = [...element.labels ?? []].flatMap(each => drawn(each.getClientRects()));
  return [...own, ...inner, ...deep, ...labels].slice(0, 20);
};
const middle = each => [each.left + each.width / 2, each.top + each.height / 2];
const within = ([x, y]) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;
const clipped = each => {  // the part of a box that the viewport and the scrollers around it leave visible
  let {left, top, right, bottom} = each;
  const views = chain(element).slice(1).filter(at => at !== document.documentElement && at !== document.body
    && getComputedStyle(at).overflow !== 'visible').map(at => at.getBoundingClientRect());
  for (const view of [...views, new DOMRect(0, 0, innerWidth, innerHeight)])
    [left, top, right, bottom] = [Math.max(left, view.left), Math.max(top, view.top), Math.min(right, view.right), Math.min(bottom, view.bottom)];
  return right > left && bottom > top ? new DOMRect(left, top, right - left, bottom - top) : null;
};
const grid = (each, parts) => Array.from({length: parts * parts}, (_, i) =>
  [each.left + each.width * (i % parts + 0.5) / parts, each.top + each.height * (Math.floor(i / parts) + 0.5) / parts]);
const line = () => {  // points on the outlines of shapes, which may be all that is painted of them
  if (!element.ownerSVGElement) return [];
  const shapes = element.getTotalLength ? [element] : [...element.querySelectorAll('path, line, polyline, polygon, rect, circle, ellipse')];
  return shapes.filter(each => each.getClientRects().length && each.getTotalLength() > 0).slice(0, 8).flatMap(shape => {
    const length = shape.getTotalLength(), matrix = shape.getScreenCTM();
    return [8, 4, 12, 2, 6, 10, 14, 1, 3, 5, 7, 9, 11, 13, 15].map(part => shape.getPointAtLength(length * part / 16).matrixTransform(matrix));
  }).map(({x, y}) => [x, y]);
};
const points = all => {
  const found = boxes(), area = element.localName === 'area';
  const near = found.flatMap(each => {
    const [x, y] = middle(each), dx = each.width / 4, dy = each.height / 4;
    return [[x, y], [x - dx, y - dy], [x + dx, y + dy], [x - dx, y + dy], [x + dx, y - dy]];
  });
  if (!all && !area) return [...near, ...line()].filter(within);
  const seen = area ? found : found.map(clipped).filter(Boolean);
  return [...near, ...line(), ...seen.map(middle), ...seen.flatMap(each => grid(each, area ? 24 : 7))].filter(within);
};
