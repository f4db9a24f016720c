// The ancestors that may scroll when a node is brought into view, nearest first; frames around it of the same origin too.
const scrollers = node => {
  const found = [];
  for (let at = node.nodeType === 1 ? node : node.parentElement; at; ) {
    found.push(at);
    at = at.assignedSlot ?? at.parentElement ?? at.getRootNode().host ?? at.ownerDocument.defaultView?.frameElement;
  }
  return found;
};
