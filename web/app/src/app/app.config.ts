import { ApplicationConfig, provideBrowserGlobalErrorListeners } from '@angular/core';
import { provideRouter, withComponentInputBinding } from '@angular/router';
import { Board } from './board/board';
import { EntityTable } from './entity-table/entity-table';
import { TablePage } from './table-page/table-page';

export const appConfig: ApplicationConfig = {
  providers: [
    provideBrowserGlobalErrorListeners(),
    provideRouter(
      [
        { path: '', component: Board },
        { path: 'table/:name', component: TablePage },
        { path: 'embed/table/:name', component: TablePage },
        { path: 'embed/board', component: Board },
        { path: 'embed/board/:board', component: Board },
        { path: 'entity/:tableNames', component: EntityTable },
        { path: '**', redirectTo: '' },
      ],
      withComponentInputBinding(),
    ),
  ],
};
