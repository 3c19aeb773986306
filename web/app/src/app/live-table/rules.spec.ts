import { holds, lookOf } from './rules';
import { NO_SHAPE } from './values';
import type { Rule, RuleOperator } from './view-state';

function rule(operator: RuleOperator, value: string, more: Partial<Rule> = {}): Rule {
  return { operator, value, colour: 'bad', bold: false, icon: '', bar: false, ...more };
}

describe('rules', () => {
  it.each([
    [12, '>', '9', true],
    ['12', '>', '9', true],
    [9, '>', '9', false],
    [9, '>=', '9', true],
    ['b', '>', 'a', true],
    ['Ada', 'contains', 'DA', true],
    [null, 'is empty', '', true],
    [null, '<', '9', false],
    [3, '>', '', false],
    [true, '=', 'true', true],
    [null, 'always', '', true],
  ] as const)('%s %s %s is %s', (value, operator, wanted, isSo) => {
    expect(holds(value, rule(operator, wanted))).toBe(isSo);
  });

  it('of two that hold, the later one decides', () => {
    const rules = [rule('>', '1', { bold: true }), rule('>', '5', { colour: 'good', icon: '▲' })];
    expect(lookOf(3, rules, NO_SHAPE)).toMatchObject({ color: 'var(--bad)', fontWeight: '700', icon: '' });
    expect(lookOf(7, rules, NO_SHAPE)).toMatchObject({ color: 'var(--good)', fontWeight: '700', icon: '▲' });
    expect(lookOf(0, rules, NO_SHAPE)).toMatchObject({ color: '', fontWeight: '', icon: '' });
  });

  it('a bar is as long as its part of the greatest value', () => {
    const shape = { ...NO_SHAPE, greatest: 200 };
    expect(lookOf(50, [rule('always', '', { bar: true })], shape).backgroundImage).toContain('25.0%');
    expect(lookOf(null, [rule('always', '', { bar: true })], shape).backgroundImage).toBe('none');
  });
});
