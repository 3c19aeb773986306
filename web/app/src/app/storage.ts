type Kind = 'localStorage' | 'sessionStorage';

/** What the browser keeps under a name; null also where it keeps nothing, as in frames of other sites. */
export function kept(kind: Kind, name: string): string | null {
  try {
    return window[kind].getItem(name);
  } catch {
    return null;
  }
}

/** Has the browser keep a text, or forget it; where it keeps nothing, nothing happens. */
export function keep(kind: Kind, name: string, text: string | null): void {
  try {
    if (text === null) window[kind].removeItem(name);
    else window[kind].setItem(name, text);
  } catch {
    // A browser may forbid a page in a frame to keep anything.
  }
}
