import { Component, computed, effect, inject, signal, untracked } from '@angular/core';
import { RouterLink } from '@angular/router';
import type { Subscription } from 'table-hub';
import { BoardPulse } from '../board-pulse';
import { CardBoard } from '../cards/card-board';
import { boardTables } from '../cards/layout';
import { Catalogue } from '../catalogue';
import { boardStatus } from '../control-panel/board-status';
import { ControlPanel } from '../control-panel/control-panel';
import { COUNT } from '../count';
import { EMBEDDED } from '../embedded';
import { copyText } from '../live-table/copy';
import { LiveTableService } from '../live-table.service';
import { PANEL_TABLES, REJECTS_TABLE, STATUS_TABLE } from '../own-tables';
import { ServerApi } from '../server-api';
import { Session } from '../session';
import { sendCommand } from './board-texts';

const LOOK_AGAIN_MS = 500;
/** Views of a busy server can come later than the rest. */
const LOOK_EVERY_MS = 10_000;

/** The board: what it is made of, what was rejected, and its cards. */
@Component({
  selector: 'app-board',
  imports: [CardBoard, ControlPanel, RouterLink],
  templateUrl: './board.html',
  styleUrl: './board.css',
})
export class Board {
  private readonly session = inject(Session);
  private readonly tables = inject(LiveTableService);
  private readonly server = inject(ServerApi);
  private readonly pulse = inject(BoardPulse);
  private readonly catalogue = inject(Catalogue);
  protected readonly isEmbedded = inject(EMBEDDED);

  protected readonly rejectsTable = REJECTS_TABLE;
  protected readonly rejects = signal<number | null>(null);
  protected readonly rejectsText = computed(() => COUNT.format(this.rejects() ?? 0));
  protected readonly offered = computed(() => this.catalogue.tables().filter(({ name }) => !PANEL_TABLES.has(name)));
  protected readonly hasTables = computed(() => boardTables(this.offered()).length > 0);
  protected readonly note = signal('');
  /** How to send the first record of each source, for as long as none has come. */
  protected readonly firstRecords = computed(() => {
    const pulse = this.pulse.latest();
    if (this.isEmbedded || !pulse?.sources.length || pulse.sources.some(({ rows, rejected }) => rows || rejected)) {
      return [];
    }
    return pulse.sources.map(({ source, table }) => {
      const columns = this.catalogue.tables().find(({ name }) => name === table)?.columns ?? [];
      return { source, command: sendCommand(source, columns) };
    });
  });
  /** The one that is live; empty before the first. */
  protected readonly generation = signal('');
  private lookAgain: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    effect((onCleanup) => {
      if (this.session.hub() === null) return;
      const subscriptions = untracked(() => this.watch());
      const looking = setInterval(() => {
        if (!document.hidden) void this.look();
      }, LOOK_EVERY_MS);
      onCleanup(() => {
        clearInterval(looking);
        clearTimeout(this.lookAgain);
        this.lookAgain = undefined;
        for (const subscription of subscriptions) subscription.unsubscribe();
      });
    });
  }

  protected async copy(command: string): Promise<void> {
    try {
      await copyText(command);
      this.note.set('Copied.');
    } catch {
      this.note.set('The browser did not let it onto the clipboard.');
    }
  }

  private watch(): Subscription[] {
    return [
      // Whatever changes the tables of the board shows in its status.
      this.tables.subscribe(
        STATUS_TABLE,
        (update) => {
          this.generation.set(boardStatus(update)?.generation ?? '');
          void this.look();
        },
        { size: 1 },
      ),
      this.tables.subscribe(
        REJECTS_TABLE,
        ({ columns, total }) => {
          if (columns.length) this.rejects.set(total);
        },
        { size: 1 },
      ),
    ];
  }

  private async look(): Promise<void> {
    clearTimeout(this.lookAgain);
    // The status can be known a moment before the first tables are loaded, and then nothing more comes of it.
    const timer = setTimeout(() => void this.look(), LOOK_AGAIN_MS);
    this.lookAgain = timer;
    try {
      const generation = this.generation();
      this.catalogue.take(await this.server.tables(), generation);
      if (this.hasTables()) clearTimeout(timer);
    } catch {
      // While the server is away, the cards stay as they are.
      clearTimeout(timer);
    }
  }
}
