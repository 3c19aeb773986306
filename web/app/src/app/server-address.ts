import { InjectionToken } from '@angular/core';

/** Where the server is: what the page's meta element says, or where the page itself came from. */
export const SERVER_ADDRESS = new InjectionToken<string>('server address', {
  providedIn: 'root',
  factory: () => {
    const configured = document.querySelector<HTMLMetaElement>('meta[name="liveboard-server"]')?.content ?? '';
    return new URL(configured, document.baseURI).href;
  },
});
