import { joinChange, topicChange } from './swap-preview';

const FITTING = { records: 1_200, sampled: 200, fitting: 200, reasons: [], columns: ['name'], empty: [] };

describe('topicChange', () => {
  it('says how many records fit', () => {
    const change = topicChange('users', { ...FITTING, source: 'users', topic: 'users-b' });
    expect(change).toEqual({
      title: 'users: users → users-b',
      lines: ['1,200 records; 200 of the last 200 fit.'],
      isDoubtful: false,
    });
  });

  it('doubts what would leave columns empty, be rejected or be nothing', () => {
    const asked = { ...FITTING, source: 'users', topic: 'accounts' };
    const empty = topicChange('users', { ...asked, empty: ['name', 'age'] });
    expect(empty.isDoubtful).toBe(true);
    expect(empty.lines[1]).toBe('Columns that would stay empty: name, age.');
    const unfit = topicChange('users', { ...asked, fitting: 0, reasons: ['age: expected bigint, found string'] });
    expect(unfit.lines[1]).toBe('The others would be rejected: age: expected bigint, found string.');
    expect(topicChange('users', { ...asked, records: 0, sampled: 0, fitting: 0 }).isDoubtful).toBe(true);
  });
});

describe('joinChange', () => {
  it('names both kinds, or that nothing changes', () => {
    expect(joinChange('left', 'inner').title).toBe('join: left → inner');
    expect(joinChange('', '').title).toBe('Nothing');
  });
});
