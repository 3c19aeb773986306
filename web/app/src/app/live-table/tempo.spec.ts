import type { TableUpdate } from 'table-hub';
import { Tempo } from './tempo';

const EMPTY: TableUpdate = {
  table: 't',
  columns: [{ name: 'ts', type: 'timestamp' }],
  keys: [],
  rows: [],
  total: 0,
  offset: 0,
  order: 'arrival',
  generation: 'g1',
  staleSince: null,
  problem: null,
};

describe('Tempo', () => {
  it('counts rows that came and rows that changed', () => {
    const tempo = new Tempo();
    tempo.take({ ...EMPTY, keys: ['1'], rows: [['a']], total: 100 }, 0);
    tempo.take({ ...EMPTY, keys: ['1'], rows: [['b']], total: 104 }, 1_000);
    expect(tempo.rate(1_000)).toBe(1);
    expect(tempo.rate(7_000)).toBe(0);
  });

  it('counts neither rows that moved nor rows that were sent again', () => {
    const tempo = new Tempo();
    tempo.take({ ...EMPTY, order: 'newest', keys: ['2', '1'], rows: [['b'], ['a']], total: 2 }, 0);
    tempo.take({ ...EMPTY, order: 'newest', keys: ['3', '2'], rows: [['c'], ['b']], total: 3 }, 1_000);
    tempo.take({ ...EMPTY, keys: ['2', '3'], rows: [['b'], ['c']], total: 3 }, 1_000);
    expect(tempo.rate(1_000)).toBe(1 / 5);
  });

  it('does not take what another filter lets through for rows that came', () => {
    const tempo = new Tempo();
    tempo.take({ ...EMPTY, total: 3 }, 0);
    tempo.restart();
    tempo.take({ ...EMPTY, total: 1_000 }, 1_000);
    expect(tempo.rate(1_000)).toBe(0);
  });

  it('knows the age of the newest row only where the window shows it, or where it saw it come', () => {
    const tempo = new Tempo();
    const early = '2026-01-31T09:00:00.000000Z';
    tempo.take({ ...EMPTY, rows: [[early]], total: 100 }, 0);
    expect(tempo.age(0)).toBeNull();
    tempo.take({ ...EMPTY, rows: [[early]], total: 101 }, 1_000);
    expect(tempo.age(3_000)).toBe(2_000);
    tempo.take({ ...EMPTY, rows: [[early]], total: 1 }, 4_000);
    expect(tempo.age(Date.parse(early) + 500)).toBe(500);
    tempo.take({ ...EMPTY, order: 'newest', rows: [[early]], total: 100 }, 5_000);
    expect(tempo.age(Date.parse(early) + 500)).toBe(500);
  });
});
