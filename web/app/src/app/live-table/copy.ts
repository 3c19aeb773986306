/** Puts a text on the clipboard, also where the page came over plain HTTP and browsers lock the newer way. */
export async function copyText(text: string): Promise<void> {
  if (isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only way outside a secure context
  document.execCommand('copy');
  area.remove();
}

/** Saves a file as the browser's downloads do. */
export function saveFile(content: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // Not at once: the download begins after the click.
  setTimeout(() => {
    URL.revokeObjectURL(link.href);
  }, 60_000);
}

/** Rows for a spreadsheet: tabs between values, which therefore lose theirs. */
export function tabSeparated(lines: readonly (readonly string[])[]): string {
  return lines.map((line) => line.map((text) => text.replace(/[\t\r\n]+/g, ' ')).join('\t')).join('\n');
}
