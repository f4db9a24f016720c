// Returns the boxes [x, y, width, height] of elements that look otherwise in the same state: those under the pointer (as far as the control
// around it) or with the focus, unless they are pictures, and endless animations.
function restless() {
  const found = [], picture = 'canvas, img, video, svg, svg *, object, embed';
  const add = element => {
    const box = element.getBoundingClientRect();
    if (box.width * box.height < innerWidth * innerHeight / 4) found.push([box.x, box.y, box.width, box.height]);
  };
  let under = [...document.querySelectorAll(':hover')].pop();
  if (under?.matches(picture) || under?.matches('html, body')) under = null;
  const held = under?.closest('a, button, li, tr, label, summary, [role], [tabindex], [onclick]');
  for (let at = under; at && at.localName !== 'body'; at = at === held ? null : held && at.parentElement) add(at);
  const holder = document.activeElement;
  if (holder && holder !== document.body && !holder.matches(picture)) add(holder);
  for (const each of document.getAnimations())
    if (each.playState === 'running' && each.effect?.target) {
      const box = each.effect.target.getBoundingClientRect();
      found.push([box.x, box.y, box.width, box.height]);
    }
  for (const each of document.querySelectorAll('video')) if (!each.paused) {
    const box = each.getBoundingClientRect();
    found.push([box.x, box.y, box.width, box.height]);
  }
  return found;
}
