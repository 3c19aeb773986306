import { type Kept, defaultName, effective } from './saved-views';

function kept(kind: Kept['kind'], name: string, shared: boolean, state: unknown = null): Kept {
  return { kind, table: 'users_ui', name, shared, state };
}

describe('what is kept', () => {
  it('is one for each name, the own one before the shared one', () => {
    const all = [kept('view', 'b', true), kept('view', 'a', false), kept('view', 'a', true), kept('board', 'c', true)];
    expect(effective(all, 'view', 'users_ui').map(({ name, shared }) => [name, shared])).toEqual([
      ['a', false],
      ['b', true],
    ]);
    expect(effective(all, 'view', 'final_ui')).toEqual([]);
  });

  it('begins with the own default, otherwise with that for all', () => {
    const forAll = kept('default', '', true, 'ours');
    expect(defaultName([], 'users_ui')).toBe('');
    expect(defaultName([forAll], 'users_ui')).toBe('ours');
    expect(defaultName([forAll, kept('default', '', false, 'mine')], 'users_ui')).toBe('mine');
  });
});
