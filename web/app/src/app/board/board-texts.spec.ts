import { behindText, rejectedText, sendCommand } from './board-texts';

describe('rejectedText', () => {
  const source = { source: 'orders', table: 'orders_ui', topic: 'orders', rows: 0, rejected: 250 };

  it('says how many and why, where nearly all records are rejected', () => {
    const text = '250 of 250 records of orders rejected: customer: expected string, found object';
    expect(rejectedText({ ...source, reason: 'customer: expected string, found object' })?.text).toBe(text);
  });

  it.each([
    { rows: 100, rejected: 250 },
    { rows: 0, rejected: 0 },
    { rows: 0, rejected: null },
  ])('says nothing of %o', (counts) => {
    expect(rejectedText({ ...source, ...counts, reason: 'x' })).toBeNull();
  });
});

describe('behindText', () => {
  it('says how far a view is behind, and nothing of one that is not', () => {
    expect(behindText(12.4)).toBe("12 s behind its tables: views share a tenth of the server's time");
    expect(behindText(undefined)).toBeNull();
  });
});

describe('sendCommand', () => {
  it('has a value for each column', () => {
    const columns = [
      { name: 'id', type: 'string' as const },
      { name: 'age', type: 'int64' as const },
      { name: 'ts', type: 'timestamp' as const },
    ];
    expect(sendCommand('users', columns)).toBe(`liveboard send users '{"id":"id-1","age":1}'`);
  });
});
