const CHANNEL = 'liveboard.session';
const ANSWER_MS = 150;

type Message = { readonly ask: true } | { readonly key: string | null };

/**
 * Hands the key from tab to tab of this browser. It is never written down for that: a tab that has it tells those that
 * ask, and only pages of the same server hear it.
 */
export class Tabs {
  private readonly channel = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel(CHANNEL);

  /** `current` gives the key of this tab; `changed` hears that another tab has logged in, or out. */
  constructor(current: () => string | null, changed: (key: string | null) => void) {
    this.channel?.addEventListener('message', ({ data }: MessageEvent<Message>) => {
      const key = current();
      if (!('ask' in data)) changed(data.key);
      else if (key !== null) this.tell(key);
    });
  }

  /** The key of another tab; null if none answers in a moment. */
  ask(): Promise<string | null> {
    const { channel } = this;
    if (channel === null) return Promise.resolve(null);
    return new Promise((resolve) => {
      const end = (key: string | null): void => {
        clearTimeout(timer);
        channel.removeEventListener('message', hear);
        resolve(key);
      };
      const hear = ({ data }: MessageEvent<Message>): void => {
        if (!('ask' in data) && data.key !== null) end(data.key);
      };
      const timer = setTimeout(() => {
        end(null);
      }, ANSWER_MS);
      channel.addEventListener('message', hear);
      channel.postMessage({ ask: true } satisfies Message);
    });
  }

  /** Tells the other tabs of a login, or with null of a logout. */
  tell(key: string | null): void {
    this.channel?.postMessage({ key } satisfies Message);
  }
}
