import { tableOfEntity } from './entity-table';

describe('tableOfEntity', () => {
  it.each([
    ['user', 'users_ui'],
    ['account', 'accounts_ui'],
    ['user-account', 'final_ui'],
    ['constructor', 'final_ui'],
  ])('%s is %s', (entity, table) => {
    expect(tableOfEntity(entity)).toBe(table);
  });
});
