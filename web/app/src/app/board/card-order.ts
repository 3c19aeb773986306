const STORED_ORDER = 'liveboard.cards';

/** The order of the cards as the viewer left them. */
export function storedOrder(): string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(STORED_ORDER) ?? '[]');
    return Array.isArray(found) ? found.filter((name) => typeof name === 'string') : [];
  } catch {
    return [];
  }
}

export function storeOrder(names: readonly string[]): void {
  localStorage.setItem(STORED_ORDER, JSON.stringify(names));
}

/** The names in a stored order; those that it does not know come last, in their own. */
export function arranged(names: readonly string[], order: readonly string[]): string[] {
  const known = order.filter((name) => names.includes(name));
  return [...known, ...names.filter((name) => !known.includes(name))];
}

/** The names with one of them moved to another place. */
export function moved(names: readonly string[], name: string, place: number): string[] {
  const others = names.filter((other) => other !== name);
  return others.toSpliced(Math.max(0, Math.min(place, others.length)), 0, name);
}
