import { InjectionToken } from '@angular/core';

/** Whether the page is made for a frame of another site: without its header, and without what changes the board. */
export const EMBEDDED = new InjectionToken<boolean>('embedded', {
  providedIn: 'root',
  factory: () => location.pathname.startsWith('/embed/'),
});
