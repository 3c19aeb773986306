/** A text as people read it: JSON with a line for every field, anything else as it is. */
export function pretty(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    // Only where nothing is lost: a number beyond 2^53 would change its digits.
    const parsed: unknown = JSON.parse(text);
    const hasLongNumber = /(?<![\w."])-?\d{16,}/.test(text);
    return hasLongNumber ? text : JSON.stringify(parsed, null, 2);
  } catch {
    return text;
  }
}

/** What a kind of join does, in a sentence; of a kind that only a newer server knows, its name. */
export function joinSentence(how: string, on: string, left: string, right: string): string {
  switch (how) {
    case 'inner':
      return `Inner join on ${on}: one row for every pair of a record of ${left} and one of ${right}.`;
    case 'asof':
      return `As-of join on ${on}: the record of ${left}, with the newest record of ${right} that is not later.`;
    case 'left':
      return `Left join on ${on}: the record of ${left}, with the newest record of ${right}.`;
    default:
      return `${how} join of ${left} and ${right} on ${on}.`;
  }
}
