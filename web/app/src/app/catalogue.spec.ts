import type { TableInfo } from 'table-hub';
import { merged } from './catalogue';

const table = (name: string, rows = 0): TableInfo => ({ name, rows, columns: [] });

describe('merged', () => {
  it('keeps what is still being loaded, where it was', () => {
    expect(merged([table('a'), table('b'), table('c')], [table('c', 1), table('a', 1)])).toEqual([
      table('a', 1),
      table('b'),
      table('c', 1),
    ]);
  });

  it('has new tables in their order', () => {
    expect(merged([table('b')], [table('a'), table('b')]).map(({ name }) => name)).toEqual(['a', 'b']);
  });
});
