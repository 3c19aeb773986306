const TOKENS = /"(?:[^"\\]|\\.)*"|[[{]\s*[\]}]|[[\]{},:]|\s+/g;

/**
 * A text as people read it: JSON with a line for every field, anything else as it is. Numbers stay as they are written,
 * since JSON.parse changes the digits of those beyond 2^53.
 */
export function pretty(text: string): string {
  if (!/^\s*[[{]/.test(text) || !isJson(text)) return text;
  let line = '\n';
  return text.replaceAll(TOKENS, (token) => {
    switch (token.charAt(0)) {
      case '"':
        // Without escapes that nobody needs, such as those of umlauts.
        return JSON.stringify(JSON.parse(token));
      case '{':
      case '[':
        if (token.length > 1) return token.charAt(0) + token.slice(-1);
        line += '  ';
        return token + line;
      case '}':
      case ']':
        line = line.slice(0, -2);
        return line + token;
      case ',':
        return token + line;
      case ':':
        return ': ';
      default:
        return '';
    }
  });
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
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
